"""Vectors on disk: `.npy` shards that are read through the memory map, row numbers as in the sentence table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

SHARD_PATTERN = "vectors-{:05d}.npy"


class VectorShards:
    """All vectors of an artifact of kind `teacher-vectors`: [N, D], float32 or float16 on disk."""

    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("vectors-*.npy"))
        self._shards = [np.load(path, mmap_mode="r") for path in self.paths]
        self._starts = np.cumsum([0, *(len(shard) for shard in self._shards)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def dimension(self) -> int:
        return int(self._shards[0].shape[1])

    def rows(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The vectors of any rows, in the order asked for: [n] row numbers -> [n, D] float32."""
        out = np.empty((len(indices), self.dimension), dtype=np.float32)
        owner = np.searchsorted(self._starts, indices, side="right") - 1
        for shard in np.unique(owner):
            mine = owner == shard
            out[mine] = self._shards[shard][indices[mine] - self._starts[shard]]
        return out
