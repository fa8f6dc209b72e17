"""Finds repeated sentences and ids by their hashes, in few bytes each."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Parts of a SentenceIndex.
_PARTS = 16


def sentence_hashes(texts: Sequence[str]) -> npt.NDArray[np.uint64]:
    """64 bits of BLAKE2b of each sentence: [n] texts -> [n] uint64.

    In a corpus of ten million sentences, the probability that any two share a hash is 3 in a million; the later one
    would then count as a repetition.
    """
    digests = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64, copy=False)


class SentenceIndex:
    """Gives each distinct hash a row number, in the order of first occurrence, in about 12 bytes per sentence.

    It holds sorted runs of hashes and row numbers (8 + 4 bytes each), merged as they grow, in 16 parts by the highest
    bits, so that a merge needs little additional memory.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._parts = [_SortedRuns() for _ in range(_PARTS)]

    def assign(
        self, hashes: npt.NDArray[np.uint64], limit: int | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The row of each hash, and the positions in `hashes` of those that are new, in order.

        New hashes get the next row numbers. Once `limit` rows are reached, further new ones get row -1.
        """
        rows = self._find(hashes)
        unknown = np.flatnonzero(rows < 0)
        distinct, first, inverse = np.unique(hashes[unknown], return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        room = len(order) if limit is None else max(0, min(len(order), limit - self.rows))
        numbers = np.full(len(order), -1, dtype=np.int64)
        numbers[order[:room]] = self.rows + np.arange(room)
        rows[unknown] = numbers[inverse]
        self._insert(distinct[numbers >= 0], numbers[numbers >= 0])
        self.rows += room
        return rows, unknown[first[order[:room]]]

    def _find(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        rows = np.full(len(hashes), -1, dtype=np.int64)
        owner = _part_of(hashes)
        for number, part in enumerate(self._parts):
            mine = np.flatnonzero(owner == number)
            rows[mine] = part.find(hashes[mine])
        return rows

    def _insert(self, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> None:
        owner = _part_of(hashes)
        for number, part in enumerate(self._parts):
            mine = owner == number
            if mine.any():
                part.add(hashes[mine], rows[mine].astype(np.uint32))


def _part_of(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return (hashes >> np.uint64(60)).astype(np.uint8)


class _SortedRuns:
    """Runs of sorted hashes, each less than half as long as the one before it."""

    def __init__(self) -> None:
        self._runs: list[tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]] = []

    def find(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        rows = np.full(len(hashes), -1, dtype=np.int64)
        for known, numbers in self._runs:
            place = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            hit = known[place] == hashes
            rows[hit] = numbers[place[hit]]
        return rows

    def add(self, hashes: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        """Add sorted hashes that are not there yet."""
        self._runs.append((hashes, rows))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            (old, old_rows), (new, new_rows) = self._runs.pop(-2), self._runs.pop()
            merged, merged_rows = np.concatenate([old, new]), np.concatenate([old_rows, new_rows])
            order = np.argsort(merged, kind="stable")
            self._runs.append((merged[order], merged_rows[order]))
