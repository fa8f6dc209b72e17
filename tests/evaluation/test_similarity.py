"""Correlations against scipy, and everything that has no value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sentcompress.evaluation.similarity import (
    UndefinedError,
    cosine_of_pairs,
    normalized,
    pearson,
    spearman,
)


@pytest.mark.parametrize("seed", range(5))
def test_correlations_with_ties_equal_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, 6, size=400).astype(float)
    predicted = np.round(gold / 5 + generator.normal(size=400), 1)
    assert spearman(gold, predicted) == pytest.approx(stats.spearmanr(gold, predicted).statistic, abs=1e-12)
    assert pearson(gold, predicted) == pytest.approx(stats.pearsonr(gold, predicted).statistic, abs=1e-12)


def test_cosines_equal_scipy_and_zero_vectors_count_as_zero() -> None:
    from scipy.spatial.distance import cosine

    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(2, 20, 7)).astype(np.float32)
    expected = [1 - cosine(a, b) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(cosine_of_pairs(first, second), expected, atol=1e-6)
    first[3] = 0
    assert cosine_of_pairs(first, second)[3] == 0


@pytest.mark.parametrize(
    ("gold", "predicted", "why"),
    [
        ([3, 3, 3], [0.1, 0.2, 0.3], "all gold scores are 3"),
        ([1, 2, 3], [0.5, 0.5, 0.5], "same similarity"),
        # what float32 rounding leaves of a model that gives one vector for everything
        ([1, 2, 3], [1.0, 1.0 + 1e-7, 1.0], "same similarity"),
        ([1], [0.5], "at least two"),
        ([], [], "at least two"),
        ([1, 2, 3], [0.1, np.nan, 0.3], "NaN or infinity"),
        ([1, np.nan, 3], [0.1, 0.2, 0.3], "a gold score is NaN or infinite"),
        ([1, np.inf, 3], [0.1, 0.2, 0.3], "a gold score is NaN or infinite"),
    ],
)
@pytest.mark.parametrize("correlation", [spearman, pearson])
def test_undefined_correlations_say_why(correlation, gold, predicted, why) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UndefinedError, match=why):
        correlation(np.array(gold, dtype=float), np.array(predicted, dtype=float))


def test_normalized_keeps_zero_rows_counts_them_and_refuses_nan() -> None:
    vectors, zeros = normalized(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))
    np.testing.assert_allclose(vectors, [[0.6, 0.8], [0, 0]], atol=1e-7)
    assert zeros == 1
    assert vectors.dtype == np.float32
    with pytest.raises(UndefinedError, match="NaN or infinity"):
        normalized(np.array([[np.nan, 1.0]]))


@pytest.mark.parametrize("scale", [1e200, 1e-200])
def test_scores_whose_squares_leave_the_range_of_a_float_are_correlated(scale: float) -> None:
    gold, predicted = np.array([1.0, 2.0, 4.0]), np.array([0.1, 0.3, 0.2])
    assert pearson(gold * scale, predicted) == pytest.approx(pearson(gold, predicted))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_a_number_has_no_cosine(value: float) -> None:
    first, second = np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)
    second[1, 2] = value
    found = cosine_of_pairs(first, second)
    assert found[0] == pytest.approx(1)
    assert np.isnan(found[1])


def test_vectors_longer_than_float32_can_tell_are_normalised_all_the_same() -> None:
    found, zeros = normalized(np.full((2, 100), 3e38, np.float32))
    np.testing.assert_allclose(found, 0.1, rtol=1e-6)
    assert zeros == 0


@pytest.mark.parametrize("scale", [1e25, 1e-30])
def test_the_length_of_very_long_and_very_short_vectors_is_theirs(scale: float) -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    found, zeros = normalized(vectors * np.float32(scale))
    wanted = vectors / np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    assert zeros == 0
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
