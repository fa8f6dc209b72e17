"""Vectors on disk: memory-mapped `.npy` files, with the row numbers of the sentence table."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentcompress.errors import InputError, SentcompressError
from sentcompress.store.arrays import write_header

VECTORS_PATTERN = "vectors-{:05d}.npy"
# Pooled states of chosen teacher layers, concatenated in one row.
LAYERS = "layers"
LAYERS_PATTERN = LAYERS + "-{:05d}.npy"
# Files that a process opens besides those of vectors: libraries, locks, pipes.
SPARE_FILES = 200


class NpyFiles:
    """All vectors of an artifact of kind `teacher-vectors`: [N, D], float32 or float16 on disk.

    Args:
        folder: the folder of the artifact.
        prefix: `vectors`, or `layers` for the states of layers, [N, L D].

    Raises:
        SentcompressError: if the system does not let a process open so many files.
    """

    def __init__(self, folder: Path, prefix: str = "vectors") -> None:
        self.paths = sorted(folder.glob(f"{prefix}-*.npy"))
        _allow_open_files(len(self.paths))
        self._files = [np.load(path, mmap_mode="r") for path in self.paths]
        self._starts = np.cumsum([0, *(len(file) for file in self._files)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def dimension(self) -> int:
        return int(self._files[0].shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """The number format on disk."""
        found: np.dtype[np.floating] = self._files[0].dtype
        return found

    @property
    def nbytes(self) -> int:
        """The size of all vectors on disk."""
        return sum(file.nbytes for file in self._files)

    def pieces(self, rows: int) -> Iterator[npt.NDArray[np.floating]]:
        """All vectors in their order, as stored, at most `rows` at a time."""
        for file in self._files:
            for start in range(0, len(file), rows):
                yield file[start : start + rows]

    def rows(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The vectors of given rows, in their order: [n] row numbers -> [n, D] float32."""
        out = np.empty((len(indices), self.dimension), dtype=np.float32)
        owner = np.searchsorted(self._starts, indices, side="right") - 1
        for file in np.unique(owner):
            mine = owner == file
            out[mine] = self._files[file][indices[mine] - self._starts[file]]
        return out


@contextmanager
def writing_vectors(
    path: Path, rows: int, dimension: int, store: str
) -> Iterator[Callable[[npt.NDArray[np.float32]], None]]:
    """Write a `.npy` file piece by piece: yields a function that appends [n, D] vectors.

    Args:
        path: where to write.
        rows, dimension: N and D, for the header.
        store: float32 or float16.

    Raises:
        InputError: if a vector is not finite as stored.
        ValueError: if not exactly `rows` vectors were appended.
    """
    written = 0
    with path.open("wb") as stream:
        write_header(stream, store, (rows, dimension))

        def append(vectors: npt.NDArray[np.float32]) -> None:
            nonlocal written
            with np.errstate(over="ignore"):  # checked below
                stored = np.ascontiguousarray(vectors, dtype=store)
            if not np.isfinite(stored).all():
                if np.isfinite(vectors).all():
                    raise InputError(f"the model's vectors are too large for {store}", "use `store` float32")
                raise InputError("the model returned vectors with NaN or infinity", "try `dtype` float32")
            # Not stream.write(stored.tobytes()), which would copy.
            stream.write(stored.data)
            written += len(stored)

        yield append
    if written != rows:
        raise ValueError(f"{written} vectors were written to {path}, expected {rows}")


def _allow_open_files(count: int) -> None:
    """Raise this process's limit of open files if `count` more would exceed it; a mapped file stays open.

    Many systems begin with a limit of 1,024.

    Raises:
        SentcompressError: if the system's own limit is lower.
    """
    needed = len(os.listdir("/dev/fd")) + count + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (ValueError, OSError):  # above the hard limit, or macOS's own
        raise SentcompressError(
            f"{count:,} files of vectors must be open at the same time, more than the system allows a process to open",
            f"raise the limit of open files to {needed} (ulimit -n, or nofile in /etc/security/limits.conf)",
        ) from None
