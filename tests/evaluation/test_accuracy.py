"""Accuracy, F1 and their intervals against scikit-learn and against drawing the examples themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from sentcompress.evaluation.accuracy import compare_predictions, majority
from sentcompress.evaluation.metrics import ACCURACY, F1
from sentcompress.evaluation.score import MEAN, Recorder, Score, select
from sentcompress.evaluation.stats import Resampling, record_mean


def noisy(truth: np.ndarray, share: float, seed: int) -> np.ndarray:
    flip = np.random.default_rng(seed).random(len(truth)) < share
    return np.where(flip, 1 - truth, truth)


def plain_f1(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    hits = (truth * predicted).sum(axis=-1)
    return 200 * hits / (truth.sum(axis=-1) + predicted.sum(axis=-1))


@pytest.fixture
def truth() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2, size=400)


def compared(
    name: str, truth: np.ndarray, predicted: dict[str, np.ndarray], rounds: int, positive: int | None = None
) -> dict[tuple[str, str], Score]:
    """Metric and role -> score."""
    recorder = Recorder(dict.fromkeys(predicted, "x"))
    compare_predictions(recorder, name, truth, predicted, Resampling(rounds), positive)
    return {(score.metric, score.role): score for score in recorder.scores}


def test_scores_equal_scikit_learn(truth: np.ndarray) -> None:
    ours, other = noisy(truth, 0.2, 1), noisy(truth, 0.1, 2)
    found = compared("MRPC", truth, {"model": ours, "compare": other}, 100, positive=1)
    for role, predicted in (("model", ours), ("compare", other)):
        assert found[ACCURACY, role].value == pytest.approx(100 * accuracy_score(truth, predicted))
        assert found[F1, role].value == pytest.approx(100 * f1_score(truth, predicted))
    kept = 100 * accuracy_score(truth, ours) / accuracy_score(truth, other)
    assert found[ACCURACY, "model"].kept == pytest.approx(kept)
    assert found[F1, "model"].difference == pytest.approx(100 * (f1_score(truth, ours) - f1_score(truth, other)))


def test_intervals_are_those_of_drawing_examples(truth: np.ndarray) -> None:
    ours, other = noisy(truth, 0.3, 1), noisy(truth, 0.25, 2)
    found = compared("MRPC", truth, {"model": ours, "compare": other}, 4000, positive=1)
    generator = np.random.default_rng(9)
    drawn = generator.integers(0, 400, size=(4000, 400))
    expected = {
        ACCURACY: 100 * ((truth == ours)[drawn].mean(axis=1) - (truth == other)[drawn].mean(axis=1)),
        F1: plain_f1(truth[drawn], ours[drawn]) - plain_f1(truth[drawn], other[drawn]),
    }
    for metric, values in expected.items():
        interval = found[metric, "model"].difference_interval
        np.testing.assert_allclose(interval, np.percentile(values, [2.5, 97.5]), atol=0.6)


def test_more_than_two_classes_and_no_comparison() -> None:
    truth = np.array([0, 1, 2, 2])
    found = compared("TREC", truth, {"model": np.array([0, 1, 2, 0])}, 0)
    assert found == {(ACCURACY, "model"): Score("x", "model", "TREC", ACCURACY, 75.0, count=4)}
    assert majority(truth, truth) == 50


def test_the_majority_is_the_class_of_the_training_examples() -> None:
    trained, truth = np.array([1, 2, 1]), np.array([0, 0, 0, 1])
    assert majority(trained, truth) == 25


def test_no_positive_example_anywhere_gives_an_f1_of_zero() -> None:
    found = compared("MRPC", np.zeros(3, int), {"model": np.zeros(3, int)}, 10, positive=1)
    assert (found[ACCURACY, "model"].value, found[F1, "model"].value) == (100, 0)


def test_mean_of_tasks_is_of_rounded_scores(truth: np.ndarray) -> None:
    recorder = Recorder({"model": "x", "compare": "y"})
    estimates = [
        compare_predictions(recorder, name, truth, {"model": noisy(truth, 0.1, s), "compare": truth}, Resampling(300))
        for s, name in enumerate(("MR", "CR", "SUBJ"))
    ]
    first = recorder.scores[0]
    record_mean(recorder, ACCURACY, estimates)
    ours, theirs = select(recorder.scores, ACCURACY, MEAN)
    assert ours.value == round(sum(round(of["model"].value, 2) for of in estimates) / 3, 2)
    assert theirs.value == 100
    assert ours.difference == pytest.approx(ours.value - 100)
    assert ours.interval is not None
    assert first.interval is not None
    assert ours.interval.low < ours.value < ours.interval.high
    assert ours.interval.high - ours.interval.low < first.interval.high - first.interval.low
