"""Accuracy, F1 and their intervals against scikit-learn and against drawing the examples themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from sentcompress.evaluation.accuracy import compare_predictions, majority, mean_of_tasks
from sentcompress.evaluation.correlation_bootstrap import Resampling


def noisy(truth: np.ndarray, share: float, seed: int) -> np.ndarray:
    flip = np.random.default_rng(seed).random(len(truth)) < share
    return np.where(flip, 1 - truth, truth)


def plain_f1(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    hits = (truth * predicted).sum(axis=-1)
    return 200 * hits / (truth.sum(axis=-1) + predicted.sum(axis=-1))


@pytest.fixture
def truth() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, size=400)


def test_scores_equal_scikit_learn(truth: np.ndarray) -> None:
    ours, other = noisy(truth, 0.2, 1), noisy(truth, 0.1, 2)
    row = compare_predictions("MRPC", truth, {"model": ours, "compare": other}, Resampling(100), positive=1).row
    for role, predicted in (("model", ours), ("compare", other)):
        assert row[role]["accuracy"] == pytest.approx(100 * accuracy_score(truth, predicted))
        assert row[role]["f1"] == pytest.approx(100 * f1_score(truth, predicted))
    assert row["share_kept"] == pytest.approx(100 * accuracy_score(truth, ours) / accuracy_score(truth, other))
    assert row["difference"]["f1"] == pytest.approx(100 * (f1_score(truth, ours) - f1_score(truth, other)))


def test_intervals_are_those_of_drawing_examples(truth: np.ndarray) -> None:
    ours, other = noisy(truth, 0.3, 1), noisy(truth, 0.25, 2)
    row = compare_predictions("MRPC", truth, {"model": ours, "compare": other}, Resampling(4000), positive=1).row
    generator = np.random.default_rng(9)
    drawn = generator.integers(0, 400, size=(4000, 400))
    expected = {
        "accuracy": 100 * ((truth == ours)[drawn].mean(axis=1) - (truth == other)[drawn].mean(axis=1)),
        "f1": plain_f1(truth[drawn], ours[drawn]) - plain_f1(truth[drawn], other[drawn]),
    }
    for score, values in expected.items():
        np.testing.assert_allclose(row["difference"][f"{score}_interval"], np.percentile(values, [2.5, 97.5]), atol=0.6)


def test_more_than_two_classes_and_no_comparison() -> None:
    truth = np.array([0, 1, 2, 2])
    row = compare_predictions("TREC", truth, {"model": np.array([0, 1, 2, 0])}, Resampling(0)).row
    assert row == {"model": {"accuracy": 75.0, "accuracy_interval": None}, "share_kept": None}
    assert majority(truth) == 50


def test_no_positive_example_anywhere_gives_an_f1_of_zero() -> None:
    row = compare_predictions("MRPC", np.zeros(3, int), {"model": np.zeros(3, int)}, Resampling(10), positive=1).row
    assert (row["model"]["accuracy"], row["model"]["f1"]) == (100, 0)


def test_mean_of_tasks_is_of_rounded_scores(truth: np.ndarray) -> None:
    tasks = [
        compare_predictions(name, truth, {"model": noisy(truth, 0.1, s), "compare": truth}, Resampling(300))
        for s, name in enumerate(("MR", "CR", "SUBJ"))
    ]
    mean = mean_of_tasks(tasks)
    scores = [round(task.row["model"]["accuracy"], 2) for task in tasks]
    assert mean["model"] == round(sum(scores) / 3, 2)
    assert mean["compare"] == 100
    assert mean["difference"]["accuracy"] == pytest.approx(mean["model"] - 100)
    low, high = mean["intervals"]["model"]
    assert low < mean["model"] < high
    one_low, one_high = tasks[0].row["model"]["accuracy_interval"]
    assert high - low < one_high - one_low
