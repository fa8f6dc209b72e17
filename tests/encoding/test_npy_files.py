"""Vectors on disk: written piece by piece, read by row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sentcompress.encoding.npy_files import VECTORS_PATTERN, NpyFiles, writing_vectors
from sentcompress.errors import InputError


@pytest.mark.parametrize("store", ["float32", "float16"])
def test_pieces_become_the_array_that_numpy_would_save(tmp_path: Path, store: str) -> None:
    vectors = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
    with writing_vectors(tmp_path / "a.npy", 10, 3, store) as append:
        for piece in (vectors[:4], vectors[4:4], vectors[4:]):
            append(piece)
    np.save(tmp_path / "b.npy", vectors.astype(store))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_too_few_vectors_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="2 vectors"), writing_vectors(tmp_path / "a.npy", 3, 2, "float32") as append:
        append(np.zeros((2, 2), dtype=np.float32))


def test_what_float16_cannot_hold_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="too large") as caught,
        writing_vectors(tmp_path / "a.npy", 1, 2, "float16") as append,
    ):
        append(np.array([[1e6, 0]], dtype=np.float32))
    assert "`store` float32" in str(caught.value.hint)


def test_vectors_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="NaN or infinity"), writing_vectors(tmp_path / "a", 1, 1, "float32") as append:
        append(np.array([[np.nan]], dtype=np.float32))


def test_rows_are_found_across_files(tmp_path: Path) -> None:
    whole = np.arange(24, dtype=np.float32).reshape(8, 3)
    for file, (start, end) in enumerate([(0, 3), (3, 7), (7, 8)]):
        np.save(tmp_path / VECTORS_PATTERN.format(file), whole[start:end].astype(np.float16))
    files = NpyFiles(tmp_path)
    wanted = np.array([7, 0, 3, 3, 2])
    assert len(files) == 8
    assert files.dimension == 3
    assert files.rows(wanted).dtype == np.float32
    np.testing.assert_array_equal(files.rows(wanted), whole[wanted])


MANY_FILES = """
import resource, sys
from pathlib import Path
from sentcompress.encoding.npy_files import NpyFiles

resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[2])))
print(len(NpyFiles(Path(sys.argv[1]))))
"""


@pytest.mark.parametrize("hard", [64, 400])
def test_more_files_than_a_process_may_open_at_first(tmp_path: Path, hard: int) -> None:
    """A mapped file stays open; the limit is raised where the system allows it, and is an error otherwise."""
    for file in range(80):
        np.save(tmp_path / VECTORS_PATTERN.format(file), np.zeros((2, 1), np.float16))
    done = subprocess.run(
        [sys.executable, "-c", MANY_FILES, str(tmp_path), str(hard)], capture_output=True, text=True, check=False
    )
    if hard == 64:
        assert "80 files of vectors must be open at the same time, more than the system allows" in done.stderr
        assert "OSError: [Errno 24]" not in done.stderr
    else:
        assert done.stdout.strip() == "160", done.stderr
