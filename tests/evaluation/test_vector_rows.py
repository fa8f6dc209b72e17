"""Vectors in pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sentcompress.evaluation import vector_rows
from sentcompress.evaluation.vector_rows import in_file, in_memory


@pytest.fixture
def vectors() -> np.ndarray:
    return np.arange(5000 * 4, dtype=np.float32).reshape(5000, 4)


def test_pieces_put_together_are_the_whole(
    tmp_path: Path, vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_rows, "PIECE", 4 * 2048)
    np.save(tmp_path / "v.npy", vectors)
    for rows in (in_memory(vectors), in_file(tmp_path / "v.npy")):
        pieces = list(rows.pieces())
        assert [start for start, _ in pieces] == [0, 2048, 4096]
        assert np.array_equal(np.concatenate([piece for _, piece in pieces]), vectors)
        assert (len(rows), rows.dimension) == (5000, 4)


def test_a_sample_is_of_distinct_rows_in_order_and_the_same_for_a_seed(
    vectors: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_rows, "PIECE", 4 * 1024)
    sample = in_memory(vectors).sample(700, seed=3)
    rows = sample[:, 0] / 4
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(sample, vectors[rows.astype(int)])
    assert 2000 < rows.mean() < 3000
    assert np.array_equal(sample, in_memory(vectors).sample(700, seed=3))
    assert not np.array_equal(sample, in_memory(vectors).sample(700, seed=4))
    assert np.array_equal(in_memory(vectors).sample(9999, seed=0), vectors)


def test_other_formats_come_as_float32(tmp_path: Path, vectors: np.ndarray) -> None:
    np.save(tmp_path / "v.npy", vectors.astype(np.float16))
    assert next(in_file(tmp_path / "v.npy").pieces())[1].dtype == np.float32
