"""Intervals against scipy's bootstrap and their theory, and draws of correlations against scipy on the drawn pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from sentcompress.evaluation import stats as bootstrap
from sentcompress.evaluation.metrics import SPEARMAN
from sentcompress.evaluation.score import NO_INTERVAL, Interval, Recorder
from sentcompress.evaluation.stats import (
    Estimate,
    Resampling,
    draw_counts,
    draw_set,
    interval,
    mean_interval,
    paired_mean_interval,
    record,
)


def pairs(size: int, seed: int, noise: float = 1.0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Gold scores with many ties, and similarities with a few."""
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, 6, size=size).astype(float)
    return gold, np.round(gold + noise * generator.normal(size=size), 1)


def test_every_draw_is_ranked_anew_as_scipy_does() -> None:
    gold, predicted = pairs(60, seed=1)
    drawn = draw_set("set", [gold], {"model": [predicted]}, "all", Resampling(50, seed=3))["model"].whole
    counts = draw_counts(60, 50, Resampling(50, seed=3).generator("set")).astype(int)
    for number in range(50):
        x, y = np.repeat(gold, counts[:, number]), np.repeat(predicted, counts[:, number])
        assert drawn.spearman[number] == pytest.approx(100 * stats.spearmanr(x, y).statistic, abs=1e-8)
        assert drawn.pearson[number] == pytest.approx(100 * stats.pearsonr(x, y).statistic, abs=1e-8)


def test_subsets_are_drawn_within_themselves_and_joined() -> None:
    (first, near), (second, far) = pairs(30, seed=1, noise=0.3), pairs(50, seed=2, noise=3.0)
    predicted = {"model": [near, far]}
    resampling = Resampling(40, seed=5)
    joined = draw_set("set", [first, second], predicted, "all", resampling)["model"]
    generator = resampling.generator("set")
    counts = [draw_counts(size, 40, generator).astype(int) for size in (30, 50)]
    for number in range(40):
        gold = np.concatenate([np.repeat(g, c[:, number]) for g, c in zip((first, second), counts, strict=True)])
        similar = np.concatenate([np.repeat(p, c[:, number]) for p, c in zip((near, far), counts, strict=True)])
        assert joined.whole.spearman[number] == pytest.approx(100 * stats.spearmanr(gold, similar).statistic)
    for aggregate, weights in (("mean", [1, 1]), ("wmean", [30, 50])):
        averaged = draw_set("set", [first, second], predicted, aggregate, resampling)["model"]
        expected = np.average([of.spearman for of in averaged.subsets], axis=0, weights=weights)
        np.testing.assert_allclose(averaged.whole.spearman, expected)


def test_both_models_see_the_same_draws() -> None:
    gold, predicted = pairs(80, seed=4)
    both = draw_set("set", [gold], {"model": [predicted], "compare": [predicted]}, "all", Resampling(100))
    np.testing.assert_array_equal(both["model"].whole.spearman, both["compare"].whole.spearman)
    one = draw_set("set", [gold], {"model": [predicted]}, "all", Resampling(100))["model"]
    np.testing.assert_array_equal(both["model"].whole.spearman, one.whole.spearman)
    other = draw_set("another", [gold], {"model": [predicted]}, "all", Resampling(100))["model"]
    assert not np.array_equal(other.whole.spearman, one.whole.spearman)


def test_interval_of_a_normal_correlation_is_that_of_fishers_transformation() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=2000)
    y = 0.8 * x + 0.6 * generator.normal(size=2000)
    low, high = interval(draw_set("n", [x], {"m": [y]}, "all", Resampling(2000))["m"].whole.pearson) or [0, 0]
    expected = stats.pearsonr(x, y).confidence_interval(0.95)
    assert low == pytest.approx(100 * expected.low, abs=0.3)
    assert high == pytest.approx(100 * expected.high, abs=0.3)


def test_interval_is_scipys_percentile_bootstrap() -> None:
    gold, predicted = pairs(300, seed=9)
    low, high = interval(draw_set("s", [gold], {"m": [predicted]}, "all", Resampling(4000))["m"].whole.spearman) or [
        0,
        0,
    ]
    expected = stats.bootstrap(
        (gold, predicted),
        lambda x, y: stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1500,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert low == pytest.approx(100 * expected.low, abs=0.6)
    assert high == pytest.approx(100 * expected.high, abs=0.6)


def test_draws_without_spread_have_no_value_and_too_many_of_them_no_interval() -> None:
    flat = draw_set("s", [np.array([1.0, 1.0, 1.0])], {"m": [np.array([0.1, 0.2, 0.3])]}, "all", Resampling(20))["m"]
    assert np.isnan(flat.whole.spearman).all()
    assert np.isnan(flat.whole.pearson).all()
    assert interval(flat.whole.spearman) is NO_INTERVAL
    assert interval(np.array([])) is None
    assert interval(np.array([1.0] * 99 + [np.nan])) == (1.0, 1.0)


def test_no_rounds_make_no_draws() -> None:
    gold, predicted = pairs(10, seed=0)
    none = draw_set("s", [gold], {"m": [predicted]}, "mean", Resampling(0))["m"]
    assert none.whole.spearman.shape == (0,)
    assert interval(none.whole.spearman) is None


def found_interval(values: npt.NDArray[np.float64], resampling: Resampling) -> Interval:
    found = mean_interval(values, resampling)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(3))
def test_mean_interval_agrees_with_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).choice([0, 1 / 3, 1 / 2, 1], size=300)
    ours = found_interval(values, Resampling(4000, seed))
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.06 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.06 * width)


def test_values_that_are_all_different(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "BLOCK", 5000)  # a few rounds at a time
    values = np.random.default_rng(0).normal(size=1000)
    low, high = found_interval(values, Resampling(seed=1))
    error = values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.25 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.25 * error)


def test_pairing_takes_out_what_both_share() -> None:
    generator = np.random.default_rng(0)
    hard = generator.uniform(size=500)
    ours, theirs = hard - 0.05 + 0.01 * generator.normal(size=500), hard
    low, high = paired_mean_interval(ours, theirs, Resampling()) or (0, 0)
    assert low < (ours - theirs).mean() < high < 0
    alone = found_interval(ours, Resampling())
    assert high - low < 0.1 * (alone.high - alone.low)
    assert paired_mean_interval(hard, hard, Resampling()) == (0, 0)


def test_the_same_seed_gives_the_same_interval_of_a_mean() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert mean_interval(values, Resampling(seed=5)) == mean_interval(values, Resampling(seed=5))
    assert mean_interval(values, Resampling(seed=5)) != mean_interval(values, Resampling(seed=6))


def test_all_or_none_of_a_sample_is_not_certain() -> None:
    """Wilson's interval for n of n begins at n / (n + z²)."""
    every, none = (mean_interval(np.full(100, value), Resampling(), 100) for value in (1.0, 0.0))
    assert every is not None
    assert none is not None
    assert (every.low, every.high) == (pytest.approx(96.3007, abs=1e-4), 100)
    assert (none.low, none.high) == (0, pytest.approx(3.6993, abs=1e-4))
    same = np.ones(100)
    assert paired_mean_interval(same, same, Resampling()) == (0, 0)


def test_values_of_a_cluster_are_drawn_together() -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 12, size=40)
    names = [f"d{number}" for number, size in enumerate(sizes) for _ in range(size)]
    values = np.repeat(generator.uniform(0.3, 0.7, size=40), sizes) + generator.uniform(-0.3, 0.3, size=len(names))
    means = []
    for _ in range(4000):
        drawn = generator.integers(0, 40, size=40)
        means.append(np.concatenate([values[np.array(names) == f"d{number}"] for number in drawn]).mean())
    low, high = np.percentile(means, [2.5, 97.5])
    found = mean_interval(values, Resampling(4000), clusters=names)
    assert found is not None
    assert found.low == pytest.approx(low, abs=0.06 * (high - low))
    assert found.high == pytest.approx(high, abs=0.06 * (high - low))
    alone = found_interval(values, Resampling(4000))
    assert found.high - found.low > 1.3 * (alone.high - alone.low)


def test_copies_of_an_item_tell_nothing_new() -> None:
    values = np.random.default_rng(0).uniform(size=50)
    names = [f"d{number}" for number in range(50)]
    found = mean_interval(np.repeat(values, 8), Resampling(), 100, np.repeat(names, 8).tolist())
    assert found == pytest.approx(mean_interval(values, Resampling(), 100))
    every = mean_interval(np.ones(400), Resampling(), 100, np.repeat(names, 8).tolist())
    assert every == mean_interval(np.ones(50), Resampling(), 100)


def test_values_without_a_cluster_are_drawn_one_by_one() -> None:
    values = np.random.default_rng(0).uniform(size=200)
    alone = mean_interval(values, Resampling())
    assert mean_interval(values, Resampling(), clusters=[""] * 200) == alone
    assert mean_interval(values, Resampling(), clusters=[f"d{number}" for number in range(200)]) == alone
    with pytest.raises(ValueError, match="200 values and 3 names"):
        mean_interval(values, Resampling(), clusters=["a", "a", "b"])


def test_what_has_no_interval() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval(np.array([]), Resampling())
    with pytest.raises(ValueError, match="finite"):
        mean_interval(np.array([1.0, np.nan]), Resampling())
    with pytest.raises(ValueError, match="same items"):
        paired_mean_interval(np.ones(3), np.ones(2), Resampling())


def test_intervals_are_those_that_were_published() -> None:
    """The draws of a seed, and with them the intervals of every published result, to the last digit."""
    values = np.random.default_rng(0).choice([0, 1 / 3, 0.5, 1], size=300)
    assert mean_interval(values, Resampling(seed=5)) == (0.4594305555555555, 0.5416666666666666)
    ours, theirs = np.arange(50.0) / 50, np.arange(50.0)[::-1] / 60
    assert paired_mean_interval(ours, theirs, Resampling(500, 2)) == (-0.07348833333333331, 0.22033999999999992)
    generator = np.random.default_rng(1)
    gold = generator.integers(0, 6, size=60).astype(float)
    predicted = np.round(gold + generator.normal(size=60), 1)
    drawn = draw_set("set", [gold], {"model": [predicted]}, "all", Resampling(50, seed=3))["model"].whole
    assert interval(drawn.spearman) == (80.75106955255706, 91.69935596604617)


def test_scores_are_recorded_with_their_intervals_and_the_paired_difference() -> None:
    recorder = Recorder({"model": "students/s", "compare": "model:t"})
    draws = np.linspace(0, 1, 101)
    estimates = {"model": Estimate(79.0, 70 + draws), "compare": Estimate(80.0, 72 + draws)}
    record(recorder, "STS-B", SPEARMAN, estimates, count=9)
    ours, theirs = recorder.scores
    assert ours.interval == pytest.approx((70.025, 70.975))
    assert (ours.difference, ours.difference_interval) == (-1.0, pytest.approx((-2, -2)))
    assert ours.kept == pytest.approx(98.75)
    assert (theirs.kept, theirs.difference, theirs.count) == (None, None, 9)
