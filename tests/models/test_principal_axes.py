"""A projection: what it computes, and the file that holds it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from sentcompress.errors import InputError, SentcompressError
from sentcompress.models.principal_axes import FILE, Projection


def made() -> Projection:
    generator = np.random.default_rng(0)
    weight, mean = generator.normal(size=(3, 5)), generator.normal(size=5)
    return Projection(weight.astype(np.float32), mean.astype(np.float32), np.float32([0.5, 0.3, 0.1]))


def test_it_subtracts_the_mean_before_it_projects() -> None:
    projection = made()
    vectors = np.random.default_rng(1).normal(size=(7, 5)).astype(np.float32)
    expected = (vectors.astype(np.float64) - projection.mean) @ projection.weight.T.astype(np.float64)
    result = projection.apply(vectors)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, atol=1e-5)
    np.testing.assert_allclose(projection.apply(projection.mean[None]), 0.0, atol=1e-6)


def test_the_file_keeps_everything_with_the_bias_for_other_readers(tmp_path: Path) -> None:
    projection = made()
    projection.save(tmp_path / FILE)
    again = Projection.load(tmp_path)
    for name in ("weight", "mean", "explained_variance_ratio", "bias"):
        np.testing.assert_array_equal(getattr(again, name), getattr(projection, name))
    tensors = load_file(tmp_path / FILE)
    np.testing.assert_array_equal(tensors["bias"], projection.bias)


def test_a_transposed_weight_is_written_as_it_reads(tmp_path: Path) -> None:
    weight = np.arange(15, dtype=np.float32).reshape(5, 3).T
    projection = Projection(weight, np.zeros(5, np.float32), np.zeros(3, np.float32))
    projection.save(tmp_path / FILE)
    np.testing.assert_array_equal(Projection.load(tmp_path).weight, weight)


@pytest.mark.parametrize("damage", [None, b"", b"not safetensors at all"])
def test_a_file_that_is_none_is_named(tmp_path: Path, damage: bytes | None) -> None:
    if damage is not None:
        (tmp_path / FILE).write_bytes(damage)
    with pytest.raises(InputError, match=FILE) as raised:
        Projection.load(tmp_path)
    assert raised.value.hint == "run the fit-pca command that made it again, with --force"


def test_a_file_without_its_tensors_is_named(tmp_path: Path) -> None:
    save_file({"weight": np.zeros((2, 2), np.float32)}, tmp_path / FILE)
    with pytest.raises(InputError, match="mean"):
        Projection.load(tmp_path)


def test_a_file_with_nan_is_damaged_and_none_is_written(tmp_path: Path) -> None:
    made().save(tmp_path / FILE)
    tensors = load_file(tmp_path / FILE)
    tensors["mean"][2] = np.nan
    save_file(tensors, tmp_path / FILE)
    with pytest.raises(InputError, match=r"damaged: NaN or infinity in mean \(1 of 5 values\)"):
        Projection.load(tmp_path)
    whole = made()
    huge = Projection(whole.weight, np.full(5, 3e38, np.float32), whole.explained_variance_ratio)
    with pytest.raises(SentcompressError, match="in the tensor bias"):
        huge.save(tmp_path / "other.safetensors")
    assert not (tmp_path / "other.safetensors").exists()
