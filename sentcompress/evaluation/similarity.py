"""Cosine similarities, and correlations of similarities with gold scores."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
# Smaller differences between cosines are float32 rounding errors.
SMALLEST_SPREAD = 1e-6
NOT_NUMBERS = "the model's vectors contain NaN or infinity"


class UndefinedError(ValueError):
    """A score is undefined for the given values; the message says why."""


def cosine_of_pairs(first: Floats, second: Floats) -> npt.NDArray[np.float64]:
    """Row-wise cosines: two [N, D] -> [N].

    The cosine with a zero vector is 0, as in sentence-transformers; with a vector that contains NaN or infinity, it is
    NaN.
    """
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products = np.einsum("nd,nd->n", a, b)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.divide(products, lengths, out=np.zeros_like(products), where=lengths != 0))


def spearman(gold: Floats, predicted: Floats) -> float:
    """Spearman's rank correlation with average ranks for ties; -1 to 1.

    Raises:
        UndefinedError: fewer than two pairs, constant values, or NaN or infinity.
    """
    from scipy.stats import rankdata

    _check_spread(gold, predicted)
    return _correlation(rankdata(gold), rankdata(predicted))


def pearson(gold: Floats, predicted: Floats) -> float:
    """Pearson's correlation, -1 to 1.

    Raises:
        UndefinedError: fewer than two pairs, constant values, or NaN or infinity.
    """
    _check_spread(gold, predicted)
    return _correlation(gold.astype(np.float64), predicted.astype(np.float64))


def normalized(vectors: Floats) -> tuple[npt.NDArray[np.float32], int]:
    """Rows scaled to unit length, [N, D] float32, and the number of zero rows, which stay zero.

    Raises:
        UndefinedError: if a value is NaN or infinite.
    """
    if not np.isfinite(vectors).all():
        raise UndefinedError(NOT_NUMBERS)
    # Summed in float64: float32 squares overflow above 1e19 and underflow below 1e-23.
    squares = np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)
    lengths = np.sqrt(squares)[:, None]
    zeros = int(np.count_nonzero(lengths == 0))
    if float(lengths.max(initial=0)) <= float(np.finfo(np.float32).max):  # otherwise a length would be infinite
        lengths = lengths.astype(np.float32)
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32, copy=False), zeros


def _check_spread(gold: Floats, predicted: Floats) -> None:
    if len(gold) < 2:
        raise UndefinedError(f"{len(gold)} pair(s): a correlation needs at least two")
    if not np.isfinite(gold).all():
        raise UndefinedError("a gold score is NaN or infinite")
    if not np.isfinite(predicted).all():
        raise UndefinedError(NOT_NUMBERS)
    if np.ptp(gold) == 0:
        raise UndefinedError(f"all gold scores are {gold[0]:g}")
    if np.ptp(predicted) < SMALLEST_SPREAD:
        raise UndefinedError("the model gives every pair the same similarity")


def _correlation(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> float:
    x, y = (_centred(values) for values in (x, y))
    found = float(x @ y / np.sqrt((x @ x) * (y @ y)))
    if not math.isfinite(found):
        raise UndefinedError("the scores are too large or too close together for a correlation")
    return found


def _centred(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The values minus their mean, divided by the largest deviation, so that squares neither overflow nor underflow."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the result is checked
        from_mean = values - values.mean()
        return np.asarray(from_mean / np.abs(from_mean).max())
