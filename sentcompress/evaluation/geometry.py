"""Geometry of an embedding space: anisotropy, effective rank, covariance and correlation of dimensions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.similarity import Floats, UndefinedError

Matrix = npt.NDArray[np.float64]
# Eigenvalues below this fraction of the largest are rounding errors.
SMALLEST_SHARE = 1e-12


def anisotropy(vectors: Floats) -> float:
    """Mean cosine of two different rows, -1 to 1; 0 for isotropic vectors.

    Ethayarajh (2019) estimates it from random pairs; for unit vectors, the mean over all pairs follows from the length
    of their sum.

    Args:
        vectors: [N, D] unit vectors.

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
    """exp of the entropy of the covariance's eigenvalues, normalised to sum to 1; 1 to D.

    Roy and Vetterli, "The effective rank: a measure of effective dimensionality" (2007), equation 3, applied to the
    covariance matrix. Equal variance in D directions gives D.

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
    """Covariance matrix with divisor N - 1: [N, D] -> [D, D].

    Raises:
        UndefinedError: fewer than two rows.
    """
    if len(vectors) < 2:
        raise UndefinedError(f"{len(vectors)} vector(s): a covariance needs at least two")
    centred = vectors - vectors.mean(axis=0, dtype=np.float64)
    return np.asarray(centred.T @ centred / (len(vectors) - 1))


def correlation(matrix: Matrix) -> list[list[float | None]]:
    """The correlation matrix of a covariance matrix; None for a dimension with zero variance."""
    spread = np.sqrt(np.diag(matrix))
    products = np.outer(spread, spread)
    found = np.divide(matrix, products, out=np.full_like(matrix, np.nan), where=products > 0)
    return [[None if np.isnan(value) else float(np.clip(value, -1, 1)) for value in row] for row in found]


def mean_off_diagonal(matrix: list[list[float | None]]) -> float | None:
    """Mean absolute off-diagonal value, ignoring None; None if there is no value."""
    entries = [
        abs(value)
        for row, values in enumerate(matrix)
        for column, value in enumerate(values)
        if row != column and value is not None
    ]
    return sum(entries) / len(entries) if entries else None
