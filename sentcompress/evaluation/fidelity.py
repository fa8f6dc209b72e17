"""Label-free agreement of a student with its teacher: shared neighbours, similarities, disagreements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.similarity import Floats

Rows = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
# Rows per block of the similarity matrix.
BLOCK = 512
# Pairs per block of similarities.
PAIRS = 2**16
BINS = 50


@dataclass(frozen=True)
class Disagreement:
    """Two sentences whose similarity differs between two models.

    Attributes:
        first, second: rows.
        model, compare: the cosine under each model.
        gap: the model's z-score minus the compared model's; a z-score is relative to the model's random pairs.
    """

    first: int
    second: int
    model: float
    compare: float
    gap: float


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of a model's cosines over random pairs."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, similarities: Values) -> Spread:
        return cls(float(similarities.mean()), float(similarities.std()))

    def standardised(self, similarities: Values) -> Values:
        """z-scores; 0 if the model gives every pair the same similarity."""
        return (similarities - self.mean) / self.deviation if self.deviation > 0 else np.zeros_like(similarities)


def nearest(vectors: Floats, k: int) -> Rows:
    """The k nearest neighbours of each row by inner product, without the row itself: [N, D] -> [N, k], best first.

    Args:
        vectors: [N, D] unit vectors, N > k.
    """
    found = np.empty((len(vectors), k), dtype=np.int64)
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK] @ vectors.T
        own = np.arange(len(block))
        block[own, start + own] = -np.inf
        best = np.argpartition(block, -k, axis=1)[:, -k:]
        order = np.argsort(-np.take_along_axis(block, best, axis=1), axis=1, kind="stable")
        found[start : start + BLOCK] = np.take_along_axis(best, order, axis=1)
    return found


def shared_neighbours(first: Rows, second: Rows) -> Values:
    """Fraction of each row's neighbours that both models have: two [N, k] -> [N], 0 to 1."""
    marks = np.sort(np.concatenate([first, second], axis=1), axis=1)
    return np.asarray((marks[:, 1:] == marks[:, :-1]).sum(axis=1) / first.shape[1])


def nearest_found(first: Rows, second: Rows) -> Values:
    """Whether the nearest row of `second` is among the k nearest of `first`: two [N, k], best first -> [N], 0 or 1."""
    return np.asarray((first == second[:, :1]).any(axis=1), dtype=np.float64)


def pairwise(vectors: Floats) -> Values:
    """Inner products of all pairs of different rows: [M, D] -> [M (M - 1) / 2]."""
    return np.asarray((vectors @ vectors.T)[np.triu_indices(len(vectors), 1)], dtype=np.float64)


def histogram(similarities: Values, edges: Values) -> list[int]:
    """Number of similarities per bin; values just outside the edges (rounding) count in the outermost bins."""
    counts, _ = np.histogram(np.clip(similarities, edges[0], edges[-1]), bins=edges)
    return [int(count) for count in counts]


def bin_edges() -> Values:
    """Edges of `BINS` bins from -1 to 1."""
    return np.linspace(-1, 1, BINS + 1)


def disagreements(
    model: Floats, compare: Floats, neighbours: tuple[Rows, Rows], spreads: tuple[Spread, Spread], count: int
) -> list[Disagreement]:
    """The `count` pairs with the largest disagreement, among the nearest neighbours of either model.

    Random pairs are unrelated for both models; what a user notices is a close pair that one model puts far apart.
    Cosines of two models have different spreads, so they are compared as z-scores. Each sentence appears at most once.

    Args:
        model, compare: [N, D] and [N, E] unit vectors.
        neighbours: the nearest rows under each model, [N, k] each.
        spreads: the spread of each model's cosines over random pairs.
    """
    pairs = _pairs_of(neighbours)
    ours, theirs = _similarities(model, pairs), _similarities(compare, pairs)
    gaps = spreads[0].standardised(ours) - spreads[1].standardised(theirs)
    found: list[Disagreement] = []
    seen: set[int] = set()
    for place in np.argsort(-np.abs(gaps), kind="stable"):
        if len(found) == count or gaps[place] == 0:
            break
        first, second = int(pairs[place, 0]), int(pairs[place, 1])
        if seen.isdisjoint((first, second)):
            seen |= {first, second}
            found.append(Disagreement(first, second, float(ours[place]), float(theirs[place]), float(gaps[place])))
    return found


def _pairs_of(neighbours: tuple[Rows, Rows]) -> Rows:
    """Distinct pairs of a row and one of its neighbours, the lower row number first: [P, 2]."""
    both = np.concatenate(neighbours, axis=1)
    rows = np.repeat(np.arange(len(both)), both.shape[1])
    pairs = np.stack([rows, both.ravel()], axis=1)
    return np.unique(np.sort(pairs, axis=1), axis=0)


def _similarities(vectors: Floats, pairs: Rows) -> Values:
    found = np.empty(len(pairs))
    for start in range(0, len(pairs), PAIRS):
        part = pairs[start : start + PAIRS]
        found[start : start + PAIRS] = np.einsum("pd,pd->p", vectors[part[:, 0]], vectors[part[:, 1]])
    return found
