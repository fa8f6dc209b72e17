"""The table of an STS evaluation: each set, its subsets and the mean of the sets, with intervals and differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sentcompress.evaluation.correlation_bootstrap import Draws, Resampling, SetDraws, draw_set, interval
from sentcompress.evaluation.metrics import Floats, UndefinedError
from sentcompress.evaluation.sts import Graded, StsScore, mean_of_sets, score_pairs, score_set, share_kept

MODEL, COMPARE = "model", "compare"


class NoScoreError(UndefinedError):
    """A set has no score with a model: `set_name`, `role`, and why."""

    def __init__(self, set_name: str, role: str, why: str) -> None:
        super().__init__(why)
        self.set_name = set_name
        self.role = role


@dataclass(frozen=True)
class GradedSet:
    """A set's gold scores and the similarities of one or two models.

    Attributes:
        subsets: their names.
        gold: the gold scores of each subset, [n] each.
        predicted: role ("model", "compare") -> similarities, by subset as `gold`.
    """

    name: str
    subsets: Sequence[str]
    gold: Sequence[Floats]
    predicted: Mapping[str, Sequence[Floats]]

    def of(self, role: str) -> list[Graded]:
        """The subsets as one model sees them."""
        return [Graded(gold, similar) for gold, similar in zip(self.gold, self.predicted[role], strict=True)]


def compare_sets(
    sets: Sequence[GradedSet],
    aggregate: str,
    resampling: Resampling,
    unscored: Callable[[str, str, str], None] = lambda name, role, why: None,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of the sets, and the row of their mean.

    Args:
        unscored: told of every subset that has no score of its own: its name, the model's role, why.

    Raises:
        NoScoreError: a set that has no score.
    """
    rows, whole = [], []
    for graded in sets:
        roles = list(graded.predicted)
        scores = {role: _score(graded, role, aggregate) for role in roles}
        draws = draw_set(graded.name, graded.gold, graded.predicted, aggregate, resampling)
        row = _row(graded.name, sum(map(len, graded.gold)), scores, {role: draws[role].whole for role in roles})
        row["subsets"] = _subset_rows(graded, draws, unscored) if len(graded.subsets) > 1 else []
        rows.append(row)
        whole.append(({role: scores[role].spearman_cosine for role in roles}, draws))
    return rows, _mean(whole)


def _score(graded: GradedSet, role: str, aggregate: str) -> StsScore:
    try:
        return score_set(graded.of(role), aggregate)
    except UndefinedError as error:
        raise NoScoreError(graded.name, role, str(error)) from None


def _subset_rows(
    graded: GradedSet, draws: Mapping[str, SetDraws], unscored: Callable[[str, str, str], None]
) -> list[dict[str, Any]]:
    rows = []
    for number, name in enumerate(graded.subsets):
        scores: dict[str, StsScore | None] = {}
        for role in graded.predicted:
            try:
                scores[role] = score_pairs(graded.of(role)[number])
            except UndefinedError as error:
                scores[role] = None
                unscored(f"{graded.name} {name}", role, str(error))
        rows.append(_row(name, len(graded.gold[number]), scores, {r: draws[r].subsets[number] for r in scores}))
    return rows


def _row(name: str, pairs: int, scores: Mapping[str, StsScore | None], draws: Mapping[str, Draws]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "pairs": pairs}
    for role, score in scores.items():
        row[role] = score and {
            "spearman_cosine": score.spearman_cosine,
            "spearman_cosine_interval": interval(draws[role].spearman),
            "pearson_cosine": score.pearson_cosine,
            "pearson_cosine_interval": interval(draws[role].pearson),
        }
    ours, other = scores[MODEL], scores.get(COMPARE)
    row["share_kept"] = share_kept(ours.spearman_cosine, other.spearman_cosine) if ours and other else None
    if ours and other:
        row["difference"] = {
            "spearman_cosine": ours.spearman_cosine - other.spearman_cosine,
            "spearman_cosine_interval": interval(draws[MODEL].spearman - draws[COMPARE].spearman),
        }
    return row


def _mean(whole: Sequence[tuple[Mapping[str, float], Mapping[str, SetDraws]]]) -> dict[str, Any]:
    roles = list(whole[0][0])
    mean: dict[str, Any] = {role: mean_of_sets([scores[role] for scores, _ in whole]) for role in roles}
    draws = {role: np.mean([of[role].whole.spearman for _, of in whole], axis=0) for role in roles}
    row = {**mean, "share_kept": None, "intervals": {role: interval(values) for role, values in draws.items()}}
    if COMPARE in mean:
        row["share_kept"] = share_kept(mean[MODEL], mean[COMPARE])
        row["difference"] = {
            "spearman_cosine": round(mean[MODEL] - mean[COMPARE], 2),
            "spearman_cosine_interval": interval(draws[MODEL] - draws[COMPARE]),
        }
    return row
