"""The three ways to make one score of a set's subsets, against scipy and SentEval's formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sentcompress.evaluation.metrics import SPEARMAN
from sentcompress.evaluation.score import MEAN, Recorder, select
from sentcompress.evaluation.similarity import UndefinedError
from sentcompress.evaluation.stats import Resampling, mean_of_sets
from sentcompress.evaluation.sts import Graded, GradedSet, compare_sets, score_set


@pytest.fixture
def subsets() -> list[Graded]:
    generator = np.random.default_rng(7)
    made = []
    for size, noise in ((30, 0.2), (200, 1.0), (75, 3.0)):
        gold = generator.integers(0, 6, size=size).astype(float)
        made.append(Graded(gold, gold + noise * generator.normal(size=size)))
    return made


def test_all_is_one_correlation_over_the_concatenation(subsets: list[Graded]) -> None:
    gold, predicted = (np.concatenate([getattr(s, side) for s in subsets]) for side in ("gold", "predicted"))
    score = score_set(subsets, "all")
    assert score.pairs == 305
    assert score.spearman == pytest.approx(100 * stats.spearmanr(gold, predicted).statistic)
    assert score.pearson == pytest.approx(100 * stats.pearsonr(gold, predicted).statistic)


def test_means_are_those_of_senteval(subsets: list[Graded]) -> None:
    each = [stats.spearmanr(s.gold, s.predicted).statistic for s in subsets]
    sizes = [len(s.gold) for s in subsets]
    assert score_set(subsets, "mean").spearman == pytest.approx(100 * np.mean(each))
    assert score_set(subsets, "wmean").spearman == pytest.approx(100 * np.average(each, weights=sizes))


def test_constant_gold_in_one_subset_spoils_the_means_alone(subsets: list[Graded]) -> None:
    flat = Graded(np.full(10, 2.0), np.arange(10.0))
    assert np.isfinite(score_set([*subsets, flat], "all").spearman)
    with pytest.raises(UndefinedError, match="all gold scores are 2"):
        score_set([*subsets, flat], "mean")


def test_mean_of_the_seven_is_the_published_one() -> None:
    # all-MiniLM-L6-v2, STS12 to STS16, STS-B, SICK-R
    assert mean_of_sets([72.37, 80.60, 75.60, 85.39, 78.99, 82.03, 77.15]) == 78.88
    # rounding comes first: the mean of these is 1.0057, that of 1.00, 1.00 and 1.01 is 1.0033
    assert mean_of_sets([1.004, 1.004, 1.009]) == 1.0
    with pytest.raises(UndefinedError):
        mean_of_sets([])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_several_sets_have_a_mean_and_one_set_has_none(subsets: list[Graded], count: int) -> None:
    recorder = Recorder({"model": "small"})
    sets = [
        GradedSet(f"set {number}", [""], [one.gold], {"model": [one.predicted]})
        for number, one in enumerate(subsets[:count])
    ]
    compare_sets(recorder, sets, "all", Resampling(0, 0))
    of_sets = [select(recorder.scores, SPEARMAN, one.name)[0].value for one in sets]
    assert of_sets == pytest.approx([score_set([one], "all").spearman for one in subsets[:count]])
    means = select(recorder.scores, SPEARMAN, MEAN)
    expected = [(mean_of_sets(of_sets), sum(len(one.gold) for one in subsets[:count]))] if count > 1 else []
    assert [(score.value, score.count) for score in means] == expected
