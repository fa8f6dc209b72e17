"""Semantic textual similarity: scores of a set from the similarities of its pairs.

The papers report Spearman x 100. For sets of several subsets, SimCSE, HPD, IBKD and DistilCSE concatenate them
and take one correlation (`all`); SentEval averages over the subsets (`mean`), or weights them by size (`wmean`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.metrics import Floats, UndefinedError, pearson, spearman

AGGREGATES = {
    "all": "one correlation over all pairs of a set",
    "mean": "mean of the correlations of a set's subsets",
    "wmean": "mean of the correlations of a set's subsets, weighted by their pairs",
}


@dataclass(frozen=True)
class Graded:
    """The pairs of one subset: gold scores and a model's similarities, both [N]."""

    gold: Floats
    predicted: Floats


@dataclass(frozen=True)
class StsScore:
    """Correlations x 100, named as sentence-transformers and mteb name them."""

    pairs: int
    spearman_cosine: float
    pearson_cosine: float


def score_pairs(pairs: Graded) -> StsScore:
    """Both correlations of one subset.

    Raises:
        UndefinedError: see `metrics.spearman`.
    """
    return StsScore(
        len(pairs.gold), 100 * spearman(pairs.gold, pairs.predicted), 100 * pearson(pairs.gold, pairs.predicted)
    )


def score_set(subsets: Sequence[Graded], aggregate: str = "all") -> StsScore:
    """Both correlations of a set, its subsets taken together as `aggregate` says.

    Raises:
        UndefinedError: for `all` if the set has no spread, for the means if any subset has none.
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
        _weighted(lambda score: score.spearman_cosine, scores, weights),
        _weighted(lambda score: score.pearson_cosine, scores, weights),
    )


def mean_of_sets(scores: Sequence[float]) -> float:
    """The mean that papers print: of scores already rounded to two decimals, rounded itself."""
    if not scores:
        raise UndefinedError("no set has a score")
    return round(sum(round(score, 2) for score in scores) / len(scores), 2)


def share_kept(score: float, reference: float) -> float | None:
    """A score in percent of the reference's; None where that means nothing (a reference of zero or less)."""
    share = 100 * score / reference if reference > 0 else math.nan
    return share if math.isfinite(share) else None


def _weighted(
    value: Callable[[StsScore], float], scores: Sequence[StsScore], weights: npt.NDArray[np.float64]
) -> float:
    return float(np.average([value(score) for score in scores], weights=weights))
