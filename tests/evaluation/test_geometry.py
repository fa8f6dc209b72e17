"""The shape of a cloud of vectors against NumPy and against clouds whose shape is known."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.evaluation.geometry import anisotropy, correlation, covariance, effective_rank, mean_off_diagonal
from sentcompress.evaluation.similarity import UndefinedError


def test_anisotropy_is_the_mean_cosine_of_all_pairs() -> None:
    vectors = np.random.default_rng(0).normal(loc=0.5, size=(60, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T)[np.triu_indices(60, 1)]
    assert anisotropy(vectors.astype(np.float32)) == pytest.approx(cosines.mean(), abs=1e-6)
    with pytest.raises(UndefinedError):
        anisotropy(vectors[:1])


def test_effective_rank_counts_directions_that_are_used_alike() -> None:
    basis = np.concatenate([np.eye(5), -np.eye(5)])
    assert effective_rank(basis) == pytest.approx(5)
    assert effective_rank(basis[[0, 5]]) == pytest.approx(1)
    vectors = np.random.default_rng(1).normal(size=(200, 7)) * np.arange(1, 8)
    shares = np.linalg.eigvalsh(np.cov(vectors.T))
    shares = shares / shares.sum()
    assert effective_rank(vectors) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    with pytest.raises(UndefinedError, match="the same"):
        effective_rank(np.ones((4, 3)))


def test_covariance_and_correlation_equal_numpy() -> None:
    vectors = np.random.default_rng(2).normal(size=(50, 6)).astype(np.float32)
    matrix = covariance(vectors)
    np.testing.assert_allclose(matrix, np.cov(vectors.T), atol=1e-6)
    np.testing.assert_allclose(np.array(correlation(matrix), dtype=float), np.corrcoef(vectors.T), atol=1e-6)
    expected = np.abs(np.corrcoef(vectors.T))[~np.eye(6, dtype=bool)].mean()
    assert mean_off_diagonal(correlation(matrix)) == pytest.approx(expected, abs=1e-6)


def test_a_dimension_that_never_changes_has_no_correlation() -> None:
    vectors = np.random.default_rng(3).normal(size=(20, 3))
    vectors[:, 1] = 0.25
    found = correlation(covariance(vectors))
    assert found[1] == [None, None, None]
    assert found[0][2] == pytest.approx(np.corrcoef(vectors[:, 0], vectors[:, 2])[0, 1])
    assert mean_off_diagonal(found) == pytest.approx(abs(found[0][2] or 0))
    assert mean_off_diagonal([[None]]) is None
