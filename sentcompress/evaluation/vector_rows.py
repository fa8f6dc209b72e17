"""Vectors read in pieces, from memory or from a file that may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
# Elements per piece: 64 MB.
PIECE = 2**24
# Pieces are multiples of this number of rows: FAISS multiplies matrices in blocks of this size, and equal blocks give
# bit-identical results.
BLOCK = 1024


@dataclass(frozen=True)
class VectorRows:
    """[N, D] vectors.

    Attributes:
        shape: N and D.
        open: returns the array. A file is mapped again for every piece, because the pages of an open mapping count as
            memory of this process.
    """

    shape: tuple[int, int]
    open: Callable[[], npt.NDArray[np.floating]]

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def dimension(self) -> int:
        return self.shape[1]

    def pieces(self) -> Iterator[tuple[int, Vectors]]:
        """Yield (first row, [n, D] float32) in order."""
        step = max(BLOCK, PIECE // self.dimension // BLOCK * BLOCK)
        for start in range(0, len(self), step):
            yield start, np.ascontiguousarray(self.open()[start : start + step], dtype=np.float32)

    def sample(self, count: int, seed: int) -> Vectors:
        """[min(count, N), D] float32: rows sampled without replacement, in order."""
        if count >= len(self):
            return np.ascontiguousarray(self.open(), dtype=np.float32)
        rows = np.sort(np.random.default_rng(seed).choice(len(self), size=count, replace=False))
        drawn = np.empty((count, self.dimension), dtype=np.float32)
        for start, piece in self.pieces():
            first, last = np.searchsorted(rows, (start, start + len(piece)))
            drawn[first:last] = piece[rows[first:last] - start]
        return drawn


def in_memory(vectors: npt.NDArray[np.floating]) -> VectorRows:
    """Rows of an array."""
    return VectorRows((vectors.shape[0], vectors.shape[1]), lambda: vectors)


def in_file(path: Path) -> VectorRows:
    """Rows of a `.npy` file."""
    shape = np.load(path, mmap_mode="r").shape
    return VectorRows((shape[0], shape[1]), lambda: np.load(path, mmap_mode="r"))
