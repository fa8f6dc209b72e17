"""Alignment and uniformity against plain loops, and their draws against drawing the pairs themselves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from sentcompress.evaluation.alignment import alignment, uniformity
from sentcompress.evaluation.similarity import UndefinedError
from sentcompress.evaluation.stats import Resampling, draw_counts

Vectors = npt.NDArray[np.float64]


def unit(count: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(count, 6))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def plain_uniformity(first: Vectors, second: Vectors) -> float:
    """Over all pairs i < j of the sentences of copies that are not the same pair drawn twice."""
    everything = np.concatenate([first, second])
    values = [
        np.exp(-2 * np.square(everything[i] - everything[j]).sum())
        for i in range(len(everything))
        for j in range(i + 1, len(everything))
    ]
    return float(np.log(np.mean(values)))


def test_values_equal_plain_loops() -> None:
    first, second = unit(40, 0), unit(40, 1)
    gold = np.linspace(0, 5, 40)
    expected = np.mean([np.square(first[i] - second[i]).sum() for i in range(40) if gold[i] > 4])
    assert alignment(first, second, gold, Resampling(0)).value == pytest.approx(expected)
    uniform = uniformity(first, second, Resampling(0)).value
    assert uniform == pytest.approx(plain_uniformity(first, second), abs=1e-6)


def test_a_score_of_exactly_four_is_not_above_it() -> None:
    first, second = unit(3, 0), unit(3, 1)
    with pytest.raises(UndefinedError, match="no pair is scored above 4"):
        alignment(first, second, np.array([4.0, 1.0, 0.0]), Resampling(0))


def test_draws_are_what_the_drawn_pairs_give() -> None:
    first, second = unit(12, 2), unit(12, 3)
    resampling = Resampling(5, seed=1)
    drawn = uniformity(first, second, resampling).draws
    counts = draw_counts(12, 5, resampling.generator("uniformity")).astype(int)
    for number in range(5):
        places = np.repeat(np.arange(12), counts[:, number])
        kernels = []
        for a, x in enumerate(places):
            for b, y in enumerate(places):
                if x == y and a != b:
                    continue  # copies of one pair
                for i, u in enumerate((first[x], second[x])):
                    for j, v in enumerate((first[y], second[y])):
                        if (a, i) != (b, j):
                            kernels.append(np.exp(-2 * np.square(u - v).sum()))
        assert drawn[number] == pytest.approx(np.log(np.mean(kernels)), abs=1e-5)
    gold = np.full(12, 5.0)
    aligned = alignment(first, second, gold, resampling)
    counts = draw_counts(12, 5, resampling.generator("alignment"))
    np.testing.assert_allclose(aligned.draws, np.square(first - second).sum(axis=1) @ counts / 12)


def test_differences_are_paired() -> None:
    first, second, gold = unit(30, 4), unit(30, 5), np.full(30, 5.0)
    for estimate in (alignment(first, second, gold, Resampling(50)), uniformity(first, second, Resampling(50))):
        none = estimate.less(estimate)
        assert (none.value, none.interval) == (0.0, (0.0, 0.0))
    assert uniformity(first, second, Resampling(0)).interval is None
