"""The result document of a fidelity evaluation, from two models' vectors of the same sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.fidelity import (
    Spread,
    bin_edges,
    disagreements,
    histogram,
    nearest,
    nearest_found,
    pairwise,
    shared_neighbours,
)
from sentcompress.evaluation.geometry import anisotropy, correlation, covariance, effective_rank, mean_off_diagonal
from sentcompress.evaluation.metrics import CORRELATION, NEAREST, NEIGHBOURS, SIMILARITIES
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.evaluation.similarity import Floats, UndefinedError, cosine_of_pairs, spearman
from sentcompress.evaluation.stats import Resampling, mean_interval

# The dimensions and sentences of the covariance in IBKD's figure 4.
SHOWN_DIMENSIONS = 16
MOST_SENTENCES = 10_000
BUCKETS = ("short", "medium", "long")
MATRIX_DIGITS = 8


@dataclass(frozen=True)
class Measuring:
    """Settings of a fidelity evaluation.

    Attributes:
        k: nearest neighbours per sentence.
        pairwise: sentences whose pairs are compared.
        show: disagreements listed.
        bootstrap: bootstrap samples, 0 for no intervals.
    """

    k: int = 10
    pairwise: int = 1000
    show: int = 10
    bootstrap: int = 1000
    seed: int = 0

    @property
    def resampling(self) -> Resampling:
        """The bootstrap settings."""
        return Resampling(self.bootstrap, self.seed)


def shape_of(vectors: Floats) -> dict[str, Any]:
    """Anisotropy, effective rank, and covariance of the first dimensions of [N, D] unit vectors.

    Undefined values (all vectors the same) are None.
    """
    some = vectors[:MOST_SENTENCES]
    matrix = covariance(some[:, :SHOWN_DIMENSIONS])
    correlations = correlation(matrix)
    try:
        rank = effective_rank(some)
    except UndefinedError:
        rank = None
    rounded: list[list[float | None]] = [[round(float(value), MATRIX_DIGITS) for value in row] for row in matrix]
    return {
        "anisotropy": anisotropy(vectors),
        "effective_rank": rank,
        "dimensions_shown": len(matrix),
        "sentences_of_covariance": len(some),
        CORRELATION: mean_off_diagonal(correlations),
        "mean_absolute_covariance": mean_off_diagonal(rounded),
        "covariance": rounded,
        "correlation": [[None if v is None else round(v, MATRIX_DIGITS) for v in row] for row in correlations],
    }


def cosine_to(student: Floats, target: Floats) -> dict[str, float]:
    """Mean, 5th percentile and median of the row-wise cosines of two [N, D]."""
    cosines = cosine_of_pairs(student, target)
    low, middle = np.percentile(cosines, [5, 50])
    return {"mean": float(cosines.mean()), "percentile_5": float(low), "median": float(middle)}


def agreement(
    recorder: Recorder,
    data: str,
    vectors: Mapping[str, Floats],
    texts: Sequence[str],
    lengths: npt.NDArray[np.int64],
    measuring: Measuring,
) -> dict[str, Any]:
    """Record how well a model agrees with another on the same sentences, and return the details for the document.

    The compared model agrees fully with itself, hence its scores of 100.

    Args:
        data: the name of the sentences.
        vectors: role ("model", "compare") -> [N, D] unit vectors.
        texts: the N sentences.
        lengths: [N], in any unit; the length buckets are formed from them.
    """
    near = {role: nearest(of, measuring.k) for role, of in vectors.items()}
    shared = shared_neighbours(near[MODEL], near[COMPARE])
    found_first = nearest_found(near[MODEL], near[COMPARE])
    some = np.random.default_rng(measuring.seed).permutation(len(texts))[: measuring.pairwise]
    similar = {role: pairwise(of[some]) for role, of in vectors.items()}
    try:
        order = spearman(similar[COMPARE], similar[MODEL])
    except UndefinedError:
        order = math.nan
    for metric, part, value, of in (
        (NEIGHBOURS, f"{measuring.k} nearest", float(shared.mean()), shared),
        (NEAREST, f"{measuring.k} nearest", float(found_first.mean()), found_first),
        (SIMILARITIES, "", order, None),
    ):
        intervals = {} if of is None else {MODEL: mean_interval(of, measuring.resampling, 100)}
        values = {MODEL: 100 * value, COMPARE: 100.0}
        count = len(some) if of is None else len(texts)
        recorder.add(data, metric, values, part=part, count=count, intervals=intervals)
    edges = bin_edges()
    spreads = {role: Spread.of(of) for role, of in similar.items()}
    found = disagreements(
        vectors[MODEL],
        vectors[COMPARE],
        (near[MODEL], near[COMPARE]),
        (spreads[MODEL], spreads[COMPARE]),
        measuring.show,
    )
    return {
        "neighbours": {
            "k": measuring.k,
            "by_chance": measuring.k / (len(texts) - 1),
            "by_length": _by_length(shared, lengths),
        },
        "sentences_of_similarities": len(some),
        "histogram": {
            "edges": [round(float(edge), 4) for edge in edges],
            **{role: histogram(of, edges) for role, of in similar.items()},
        },
        "disagreements": [{**vars(pair), "first": texts[pair.first], "second": texts[pair.second]} for pair in found],
    }


def _by_length(shared: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """Shared neighbours by length tercile; empty terciles are omitted."""
    bounds = np.quantile(lengths, [1 / 3, 2 / 3])
    bucket = np.searchsorted(bounds, lengths, side="left")
    rows = []
    for number, name in enumerate(BUCKETS):
        mine = bucket == number
        if mine.any():
            rows.append(
                {
                    "name": name,
                    "sentences": int(mine.sum()),
                    "shortest": int(lengths[mine].min()),
                    "longest": int(lengths[mine].max()),
                    "overlap": float(shared[mine].mean()),
                }
            )
    return rows
