"""What is tried within a number of bytes, and the choice among fitted quantizers."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.errors import InputError
from sentcompress.quantization.choice import HeldOut, StoragePlan, Trial, fitted, plans, table_of_prefixes, turn_of
from sentcompress.quantization.codecs import Float32, Values
from sentcompress.quantization.quantizer import Quantizer


def trial(dimension: int, score: float) -> Trial:
    axes = np.eye(dimension, 8, dtype=np.float32)
    return Trial(Quantizer(axes, Float32(dimension)), np.full(3, score))


def test_of_two_that_score_the_same_the_smaller_one_is_best() -> None:
    small, large = trial(4, 0.82301), trial(8, 0.82302)
    assert max((small, large), key=lambda one: one.order) is small
    assert max((large, small), key=lambda one: one.order) is small
    better = trial(8, 0.8232)
    assert max((small, better), key=lambda one: one.order) is better


def test_the_plans_of_a_number_of_bytes() -> None:
    assert plans(128, 384) == [
        StoragePlan("float32", 32),
        StoragePlan("float16", 64),
        StoragePlan("int8", 128),
        StoragePlan("int4", 256),
        StoragePlan("binary", 384),
        StoragePlan("pq", 384, 128),
        StoragePlan("pq", 256, 128),
    ]
    assert plans(1, 384, "binary") == [StoragePlan("binary", 8)]
    assert plans(1, 384, "int8") == [StoragePlan("int8", 1)]
    assert plans(48, 384, "pq", 96) == [StoragePlan("pq", 96, 48)]
    assert plans(2000, 16, "auto", 16)[0] == StoragePlan("float32", 16)


def test_product_codes_that_would_leave_most_bytes_unused_are_refused() -> None:
    for dimension, segments, better in ((127, "1 segment", 126), (254, "2 segments", 192)):
        with pytest.raises(InputError, match=f"{dimension} dimensions into at most {segments} of equal") as caught:
            plans(64, 384, "pq", dimension)
        assert f"such as {better}" in str(caught.value.hint)
        assert plans(64, 384, "pq", better)[0].segments >= 63
        assert StoragePlan("pq", dimension, int(segments[0])) in plans(64, 384, "auto", dimension)
    assert plans(64, 384, "pq", 100) == [StoragePlan("pq", 100, 50)]
    assert plans(64, 7, "pq")[0].segments == 3
    assert plans(4, 384, "pq", 9) == [StoragePlan("pq", 9, 3)]
    assert plans(4, 384, "pq", 10) == [StoragePlan("pq", 10, 2)], "half of the bytes are used"


def test_product_codes_have_at_most_half_a_byte_per_dimension() -> None:
    assert plans(64, 384, "pq", 30) == [StoragePlan("pq", 30, 15)]
    for dimension in (30, 64):
        assert "pq" not in {plan.format for plan in plans(64, 384, "auto", dimension)}, "int8 holds all dimensions"
    assert "pq" in {plan.format for plan in plans(64, 384, "auto", 66)}
    with pytest.raises(InputError, match="at least two dimensions"):
        plans(64, 384, "pq", 1)


def vectors(rows: int, seed: int = 0) -> Values:
    """Vectors of 48 dimensions around a mean, with variances that fall from the last dimension to the first."""
    values = np.random.default_rng(seed).normal(size=(rows, 48)) * 0.9 ** np.arange(48)[::-1]
    return np.asarray(values + 2, dtype=np.float32)


def test_the_turn_is_to_the_axes_of_the_largest_variance_around_the_mean() -> None:
    sample = vectors(500)
    turn = turn_of(sample)
    np.testing.assert_allclose(turn.axes @ turn.axes.T, np.eye(48), atol=1e-5)
    variances = np.var(sample @ turn.axes.T, axis=0)
    assert (np.diff(variances) <= 1e-6).all()
    assert variances.sum() == pytest.approx(sample.var(axis=0).sum(), rel=1e-5)
    expected = np.linalg.eigvalsh(np.cov(sample.T, bias=True))[::-1]
    np.testing.assert_allclose(variances, expected, rtol=1e-3)
    assert turn_of(vectors(7)).axes.shape == (7, 48)
    with pytest.raises(InputError):
        turn_of(np.ones((9, 48), dtype=np.float32))


def test_prefixes_are_scored_as_float32_and_as_far_as_they_are_stored() -> None:
    sample, queries, documents = vectors(500), vectors(5, 1), vectors(300, 2)

    def cosines(ours: Values, others: Values) -> Values:
        lengths = np.linalg.norm(ours, axis=1)[:, None] * np.linalg.norm(others, axis=1)
        return np.asarray(ours @ others.T / lengths, dtype=np.float32)

    def likeness(ours: Values, others: Values) -> np.ndarray:
        return 100 - 100 * np.abs(cosines(ours, others) - cosines(queries, documents)).mean(axis=1)

    turn = turn_of(sample)
    chosen = fitted(StoragePlan("int4", 40), turn, sample, 0)
    table = table_of_prefixes(turn, chosen, HeldOut(queries, documents, likeness))
    assert [row["dimension"] for row in table] == [32, 40, 48]
    first, second, third = (row["float32"] for row in table)
    assert first < second < third == pytest.approx(100, abs=1e-3)
    assert [row["stored"] is None for row in table] == [False, False, True]
    for row in table[:2]:
        assert row["stored"] != row["float32"]
        assert row["stored"] == pytest.approx(row["float32"], abs=1)
