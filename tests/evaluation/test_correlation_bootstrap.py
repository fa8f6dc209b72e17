"""Draws of correlations against scipy on the drawn pairs themselves, and intervals against their theory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from sentcompress.evaluation.correlation_bootstrap import Resampling, draw_counts, draw_set, interval


def pairs(size: int, seed: int, noise: float = 1.0) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Gold scores with many ties, and similarities with a few."""
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, 6, size=size).astype(float)
    return gold, np.round(gold + noise * generator.normal(size=size), 1)


def test_every_draw_is_ranked_anew_as_scipy_does() -> None:
    gold, predicted = pairs(60, seed=1)
    drawn = draw_set("set", [gold], {"model": [predicted]}, "all", Resampling(50, seed=3))["model"].whole
    counts = draw_counts(60, 50, Resampling(50, seed=3).generator("set")).astype(int)
    for number in range(50):
        x, y = np.repeat(gold, counts[:, number]), np.repeat(predicted, counts[:, number])
        assert drawn.spearman[number] == pytest.approx(100 * stats.spearmanr(x, y).statistic, abs=1e-8)
        assert drawn.pearson[number] == pytest.approx(100 * stats.pearsonr(x, y).statistic, abs=1e-8)


def test_subsets_are_drawn_within_themselves_and_joined() -> None:
    (first, near), (second, far) = pairs(30, seed=1, noise=0.3), pairs(50, seed=2, noise=3.0)
    predicted = {"model": [near, far]}
    resampling = Resampling(40, seed=5)
    joined = draw_set("set", [first, second], predicted, "all", resampling)["model"]
    generator = resampling.generator("set")
    counts = [draw_counts(size, 40, generator).astype(int) for size in (30, 50)]
    for number in range(40):
        gold = np.concatenate([np.repeat(g, c[:, number]) for g, c in zip((first, second), counts, strict=True)])
        similar = np.concatenate([np.repeat(p, c[:, number]) for p, c in zip((near, far), counts, strict=True)])
        assert joined.whole.spearman[number] == pytest.approx(100 * stats.spearmanr(gold, similar).statistic)
    for aggregate, weights in (("mean", [1, 1]), ("wmean", [30, 50])):
        averaged = draw_set("set", [first, second], predicted, aggregate, resampling)["model"]
        expected = np.average([of.spearman for of in averaged.subsets], axis=0, weights=weights)
        np.testing.assert_allclose(averaged.whole.spearman, expected)


def test_both_models_see_the_same_draws() -> None:
    gold, predicted = pairs(80, seed=4)
    both = draw_set("set", [gold], {"model": [predicted], "compare": [predicted]}, "all", Resampling(100))
    np.testing.assert_array_equal(both["model"].whole.spearman, both["compare"].whole.spearman)
    one = draw_set("set", [gold], {"model": [predicted]}, "all", Resampling(100))["model"]
    np.testing.assert_array_equal(both["model"].whole.spearman, one.whole.spearman)
    other = draw_set("another", [gold], {"model": [predicted]}, "all", Resampling(100))["model"]
    assert not np.array_equal(other.whole.spearman, one.whole.spearman)


def test_interval_of_a_normal_correlation_is_that_of_fishers_transformation() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=2000)
    y = 0.8 * x + 0.6 * generator.normal(size=2000)
    low, high = interval(draw_set("n", [x], {"m": [y]}, "all", Resampling(2000))["m"].whole.pearson) or [0, 0]
    expected = stats.pearsonr(x, y).confidence_interval(0.95)
    assert low == pytest.approx(100 * expected.low, abs=0.3)
    assert high == pytest.approx(100 * expected.high, abs=0.3)


def test_interval_is_scipys_percentile_bootstrap() -> None:
    gold, predicted = pairs(300, seed=9)
    low, high = interval(draw_set("s", [gold], {"m": [predicted]}, "all", Resampling(4000))["m"].whole.spearman) or [
        0,
        0,
    ]
    expected = stats.bootstrap(
        (gold, predicted),
        lambda x, y: stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=1500,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert low == pytest.approx(100 * expected.low, abs=0.6)
    assert high == pytest.approx(100 * expected.high, abs=0.6)


def test_draws_without_spread_have_no_value_and_too_many_of_them_no_interval() -> None:
    flat = draw_set("s", [np.array([1.0, 1.0, 1.0])], {"m": [np.array([0.1, 0.2, 0.3])]}, "all", Resampling(20))["m"]
    assert np.isnan(flat.whole.spearman).all()
    assert np.isnan(flat.whole.pearson).all()
    assert interval(flat.whole.spearman) is None
    assert interval(np.array([])) is None
    assert interval(np.array([1.0] * 99 + [np.nan])) == [1.0, 1.0]


def test_no_rounds_make_no_draws() -> None:
    gold, predicted = pairs(10, seed=0)
    none = draw_set("s", [gold], {"m": [predicted]}, "mean", Resampling(0))["m"]
    assert none.whole.spearman.shape == (0,)
    assert interval(none.whole.spearman) is None
