"""Accuracy and F1 of predictions, with intervals over the test examples, and paired differences.

A bootstrap draw of N examples only matters by how often each kind of example was drawn: right or wrong by each model,
in the positive class or not. These counts are multinomial, so they are drawn themselves, which is the same thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.correlation_bootstrap import Resampling, interval
from sentcompress.evaluation.sts import mean_of_sets, share_kept

Labels = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
MODEL, COMPARE = "model", "compare"


@dataclass(frozen=True)
class Compared:
    """The row of one task, and the draws of each model's accuracy x 100, [rounds]."""

    row: dict[str, Any]
    draws: Mapping[str, Values]


def compare_predictions(
    name: str, truth: Labels, predicted: Mapping[str, Labels], resampling: Resampling, positive: int | None = None
) -> Compared:
    """Scores x 100 of each model, their intervals, the paired difference, and the share of the accuracy kept.

    Args:
        name: of the task; with the seed it decides the draws.
        truth: [N] class numbers.
        predicted: "model", and "compare" if there is one -> [N] class numbers.
        positive: the class of which F1 is taken as well.
    """
    right = {role: of == truth for role, of in predicted.items()}
    is_positive = truth == positive if positive is not None else np.zeros(len(truth), dtype=bool)
    kinds, counts = np.unique(np.stack([is_positive, *right.values()], axis=1), axis=0, return_counts=True)
    drawn = resampling.generator(name).multinomial(len(truth), counts / len(truth), size=resampling.rounds)
    values, draws = (
        {role: _scores(c, kinds, number, positive is not None) for number, role in enumerate(predicted, start=1)}
        for c in (counts, drawn)
    )
    row: dict[str, Any] = {role: _entry(of, draws[role]) for role, of in values.items()}
    row["share_kept"] = None
    if COMPARE in row:
        row["share_kept"] = share_kept(row[MODEL]["accuracy"], row[COMPARE]["accuracy"])
        row["difference"] = _entry(_less(values), _less(draws))
    return Compared(row, {role: of["accuracy"] for role, of in draws.items()})


def mean_of_tasks(compared: Sequence[Compared]) -> dict[str, Any]:
    """The mean of the accuracies, rounded to two decimals before and after as papers print them, with intervals."""
    roles = [role for role in (MODEL, COMPARE) if role in compared[0].row]
    mean: dict[str, Any] = {role: mean_of_sets([of.row[role]["accuracy"] for of in compared]) for role in roles}
    draws = {role: np.mean([of.draws[role] for of in compared], axis=0) for role in roles}
    row = {**mean, "share_kept": None, "intervals": {role: interval(values) for role, values in draws.items()}}
    if COMPARE in mean:
        row["share_kept"] = share_kept(mean[MODEL], mean[COMPARE])
        row["difference"] = {
            "accuracy": round(mean[MODEL] - mean[COMPARE], 2),
            "accuracy_interval": interval(draws[MODEL] - draws[COMPARE]),
        }
    return row


def majority(truth: Labels) -> float:
    """The accuracy x 100 of always naming the most frequent class."""
    return float(100 * np.bincount(truth).max() / len(truth))


def _scores(counts: Counts, kinds: npt.NDArray[np.bool_], number: int, with_f1: bool) -> dict[str, Values]:
    """Scores from how often each kind of example occurs: [..., K] -> [...].

    Args:
        kinds: [K, roles + 1], whether it is positive, whether each model is right.
        number: the column of the model.
    """
    positive, right = kinds[:, 0], kinds[:, number]
    scores = {"accuracy": np.asarray(100 * (counts @ right) / counts.sum(axis=-1))}
    if with_f1:
        hits, wrong = counts @ (positive & right), counts @ ~right
        among = np.asarray(2 * hits + wrong)
        # Nothing positive, neither in truth nor predicted: 0, as scikit-learn has it.
        scores["f1"] = np.divide(200.0 * hits, among, out=np.zeros(among.shape), where=among > 0)
    return scores


def _entry(values: Mapping[str, Values], draws: Mapping[str, Values]) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    for score, value in values.items():
        entry |= {score: float(value), f"{score}_interval": interval(draws[score])}
    return entry


def _less(of: Mapping[str, Mapping[str, Values]]) -> dict[str, Values]:
    return {score: value - of[COMPARE][score] for score, value in of[MODEL].items()}
