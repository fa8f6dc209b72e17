"""Accuracy and F1 with bootstrap intervals over the test examples, and paired differences.

A bootstrap sample affects the scores only through the number of examples of each kind: classified correctly or not by
each model, positive or not. These counts are multinomial, so they are drawn directly.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.metrics import ACCURACY, F1
from sentcompress.evaluation.score import MODEL, Recorder
from sentcompress.evaluation.stats import Estimate, Resampling, record

Labels = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
Estimates = Mapping[str, Estimate]


def compare_predictions(
    recorder: Recorder,
    name: str,
    truth: Labels,
    predicted: Mapping[str, Labels],
    resampling: Resampling,
    positive: int | None = None,
) -> Estimates:
    """Record the scores x 100 of each model on one task, and return the accuracies by role.

    Args:
        name: the task; with the seed, it determines the bootstrap samples.
        truth: [N] class numbers.
        predicted: role ("model", "compare") -> [N] class numbers.
        positive: also compute F1 of this class.
    """
    right = {role: of == truth for role, of in predicted.items()}
    is_positive = truth == positive if positive is not None else np.zeros(len(truth), dtype=bool)
    kinds, counts = np.unique(np.stack([is_positive, *right.values()], axis=1), axis=0, return_counts=True)
    drawn = resampling.generator(name).multinomial(len(truth), counts / len(truth), size=resampling.rounds)
    values, draws = (
        {role: _scores(c, kinds, number, positive is not None) for number, role in enumerate(predicted, start=1)}
        for c in (counts, drawn)
    )
    for metric in values[MODEL]:
        estimates = {role: Estimate(float(of[metric]), draws[role][metric]) for role, of in values.items()}
        record(recorder, name, metric, estimates, count=len(truth))
    return {role: Estimate(float(of[ACCURACY]), draws[role][ACCURACY]) for role, of in values.items()}


def majority(trained: Labels, truth: Labels) -> float:
    """Accuracy x 100 of always predicting the most frequent class of the training examples; of several, the first."""
    return float(100 * (truth == np.bincount(trained).argmax()).mean())


def _scores(counts: Counts, kinds: npt.NDArray[np.bool_], number: int, with_f1: bool) -> dict[str, Values]:
    """Scores from the counts of each kind of example: [..., K] -> [...].

    Args:
        kinds: [K, roles + 1]: whether the kind is positive, then whether each model classifies it correctly.
        number: the model's column in `kinds`.
    """
    positive, right = kinds[:, 0], kinds[:, number]
    scores = {ACCURACY: np.asarray(100 * (counts @ right) / counts.sum(axis=-1))}
    if with_f1:
        hits, wrong = counts @ (positive & right), counts @ ~right
        among = np.asarray(2 * hits + wrong)
        # 0 without true or predicted positives, as in scikit-learn.
        scores[F1] = np.divide(200.0 * hits, among, out=np.zeros(among.shape), where=among > 0)
    return scores
