"""The shape of a cloud of vectors: how directions are used, without asking what the vectors mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.metrics import Floats, UndefinedError

Matrix = npt.NDArray[np.float64]
# Variance below this share of the largest is rounding.
SMALLEST_SHARE = 1e-12


def anisotropy(vectors: Floats) -> float:
    """Mean cosine of two different rows, -1 to 1; 0 for vectors that point everywhere alike.

    Ethayarajh (2019) estimates it from random pairs; with rows of length one, the mean over all pairs follows from
    the length of their sum.

    Args:
        vectors: [N, D], rows of length one.

    Raises:
        UndefinedError: fewer than two rows.
    """
    count = len(vectors)
    if count < 2:
        raise UndefinedError(f"{count} vector(s): a mean over pairs needs at least two")
    total = vectors.sum(axis=0, dtype=np.float64)
    own = float(np.einsum("nd,nd->", vectors, vectors, dtype=np.float64))
    return (float(total @ total) - own) / (count * (count - 1))


def effective_rank(vectors: Floats) -> float:
    """exp of the entropy of the covariance's eigenvalues as shares of their sum; 1 to D.

    Roy and Vetterli, "The effective rank: a measure of effective dimensionality" (2007), equation 3, of the covariance
    matrix. D directions used alike give D.

    Args:
        vectors: [N, D].

    Raises:
        UndefinedError: all rows are the same.
    """
    values = np.linalg.eigvalsh(covariance(vectors))
    values = values[values > SMALLEST_SHARE * max(float(values[-1]), 0.0)]
    if len(values) == 0 or values.sum() <= SMALLEST_SHARE:
        raise UndefinedError("all vectors are the same")
    shares = values / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def covariance(vectors: Floats) -> Matrix:
    """[N, D] -> [D, D], divided by N - 1.

    Raises:
        UndefinedError: fewer than two rows.
    """
    if len(vectors) < 2:
        raise UndefinedError(f"{len(vectors)} vector(s): a covariance needs at least two")
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    return np.asarray(centred.T @ centred / (len(vectors) - 1))


def correlation(matrix: Matrix) -> list[list[float | None]]:
    """The correlations of a covariance matrix; None beside a dimension that never changes."""
    spread = np.sqrt(np.diag(matrix))
    products = np.outer(spread, spread)
    found = np.divide(matrix, products, out=np.full_like(matrix, np.nan), where=products > 0)
    return [[None if np.isnan(value) else float(np.clip(value, -1, 1)) for value in row] for row in found]


def mean_off_diagonal(matrix: list[list[float | None]]) -> float | None:
    """Mean absolute value beside the diagonal, over the entries that there are; None if there are none."""
    entries = [
        abs(value)
        for row, values in enumerate(matrix)
        for column, value in enumerate(values)
        if row != column and value is not None
    ]
    return sum(entries) / len(entries) if entries else None
