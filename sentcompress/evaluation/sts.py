"""Semantic textual similarity: correlations with intervals and paired differences.

The papers report Spearman x 100. For sets of several subsets, SimCSE, HPD, IBKD and DistilCSE concatenate them
and take one correlation (`all`); SentEval averages over the subsets (`mean`), or weights them by size (`wmean`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.metrics import PEARSON, SPEARMAN
from sentcompress.evaluation.score import Recorder
from sentcompress.evaluation.similarity import Floats, UndefinedError, pearson, spearman
from sentcompress.evaluation.stats import Draws, Estimate, Resampling, SetDraws, draw_set, record, record_mean

AGGREGATES = {
    "all": "one correlation over all pairs of a set",
    "mean": "mean of the correlations of a set's subsets",
    "wmean": "mean of the correlations of a set's subsets, weighted by number of pairs",
}


@dataclass(frozen=True)
class Graded:
    """The pairs of one subset: gold scores and a model's similarities, both [N]."""

    gold: Floats
    predicted: Floats


@dataclass(frozen=True)
class StsScore:
    """Correlations x 100."""

    pairs: int
    spearman: float
    pearson: float


def score_pairs(pairs: Graded) -> StsScore:
    """Both correlations of one subset.

    Raises:
        UndefinedError: see `similarity.spearman`.
    """
    return StsScore(
        len(pairs.gold), 100 * spearman(pairs.gold, pairs.predicted), 100 * pearson(pairs.gold, pairs.predicted)
    )


def score_set(subsets: Sequence[Graded], aggregate: str = "all") -> StsScore:
    """Both correlations of a set, aggregated over its subsets.

    Raises:
        UndefinedError: for `all` if the whole set has no score, for the means if a subset has none.
    """
    if aggregate == "all":
        return score_pairs(
            Graded(
                np.concatenate([subset.gold for subset in subsets]),
                np.concatenate([subset.predicted for subset in subsets]),
            )
        )
    scores = [score_pairs(subset) for subset in subsets]
    weights = np.array([score.pairs if aggregate == "wmean" else 1.0 for score in scores])
    return StsScore(
        sum(score.pairs for score in scores),
        _weighted(lambda score: score.spearman, scores, weights),
        _weighted(lambda score: score.pearson, scores, weights),
    )


class NoScoreError(UndefinedError):
    """A set has no score with a model; carries `set_name`, `role` and the reason."""

    def __init__(self, set_name: str, role: str, why: str) -> None:
        super().__init__(why)
        self.set_name = set_name
        self.role = role


@dataclass(frozen=True)
class GradedSet:
    """A set's gold scores and the similarities of one or two models.

    Attributes:
        subsets: names of the subsets.
        gold: the gold scores of each subset, [n] each.
        predicted: role ("model", "compare") -> similarities, by subset as `gold`.
    """

    name: str
    subsets: Sequence[str]
    gold: Sequence[Floats]
    predicted: Mapping[str, Sequence[Floats]]

    def of(self, role: str) -> list[Graded]:
        """The subsets with one model's similarities."""
        return [Graded(gold, similar) for gold, similar in zip(self.gold, self.predicted[role], strict=True)]


def compare_sets(
    recorder: Recorder,
    sets: Sequence[GradedSet],
    aggregate: str,
    resampling: Resampling,
    unscored: Callable[[str, str, str], None] = lambda name, role, why: None,
) -> None:
    """Record the scores of every set, of its subsets, and their mean.

    Args:
        unscored: called with (name, role, reason) for every subset without a score of its own.

    Raises:
        NoScoreError: if a set has no score.
    """
    of_sets: list[dict[str, Estimate]] = []
    for graded in sets:
        scores = {role: _score(graded, role, aggregate) for role in graded.predicted}
        draws = draw_set(graded.name, graded.gold, graded.predicted, aggregate, resampling)
        pairs = sum(map(len, graded.gold))
        of_sets.append(_record(recorder, graded.name, "", pairs, scores, {r: draws[r].whole for r in scores}))
        if len(graded.subsets) > 1:
            _record_subsets(recorder, graded, draws, unscored)
    if len(sets) > 1:
        record_mean(recorder, SPEARMAN, of_sets, sum(len(gold) for graded in sets for gold in graded.gold))


def _score(graded: GradedSet, role: str, aggregate: str) -> StsScore:
    try:
        return score_set(graded.of(role), aggregate)
    except UndefinedError as error:
        raise NoScoreError(graded.name, role, str(error)) from None


def _record_subsets(
    recorder: Recorder, graded: GradedSet, draws: Mapping[str, SetDraws], unscored: Callable[[str, str, str], None]
) -> None:
    for number, name in enumerate(graded.subsets):
        pairs = len(graded.gold[number])
        scores: dict[str, StsScore] = {}
        for role in graded.predicted:
            try:
                scores[role] = score_pairs(graded.of(role)[number])
            except UndefinedError as error:
                scores[role] = StsScore(pairs, math.nan, math.nan)
                unscored(f"{graded.name} {name}", role, str(error))
        _record(recorder, graded.name, name, pairs, scores, {r: draws[r].subsets[number] for r in scores})


def _record(
    recorder: Recorder, name: str, subset: str, pairs: int, scores: Mapping[str, StsScore], draws: Mapping[str, Draws]
) -> dict[str, Estimate]:
    """Record both correlations of a set or subset, and return Spearman's."""
    ranked = {role: Estimate(score.spearman, draws[role].spearman) for role, score in scores.items()}
    linear = {role: Estimate(score.pearson, draws[role].pearson) for role, score in scores.items()}
    record(recorder, name, SPEARMAN, ranked, part=subset, count=pairs)
    record(recorder, name, PEARSON, linear, part=subset, count=pairs)
    return ranked


def _weighted(
    value: Callable[[StsScore], float], scores: Sequence[StsScore], weights: npt.NDArray[np.float64]
) -> float:
    return float(np.average([value(score) for score in scores], weights=weights))
