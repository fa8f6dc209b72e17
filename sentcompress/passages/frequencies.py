"""In how many documents each word occurs, in memory that does not grow with the collection."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentcompress.store.arrays import save_array

# A power of two. Words that share a slot are counted together; with a million words, a fifth share one with another.
SLOTS = 2**22


class DocumentFrequencies:
    """Document frequencies of words, counted by a hash of each word (16 MiB).

    Args:
        counts: [SLOTS] the result of an earlier count.
        documents: the number of documents counted.
    """

    def __init__(self, counts: npt.NDArray[np.uint32] | None = None, documents: int = 0) -> None:
        self._counts = np.zeros(SLOTS, np.uint32) if counts is None else counts
        self.documents = documents

    def add(self, words: Iterable[str]) -> None:
        """Count the words of one document; a word counts once."""
        slots = {_slot(word) for word in words}
        self._counts[np.fromiter(slots, np.int64, len(slots))] += 1
        self.documents += 1

    def __getitem__(self, word: str) -> int:
        """The number of documents with this word."""
        return int(self._counts[_slot(word)])

    def weight(self, word: str) -> float:
        """The inverse document frequency, log(N / n), of a word that occurs in n of N documents."""
        return math.log(max(1, self.documents) / max(1, self[word]))

    def save(self, path: Path) -> None:
        """Write the counts as an `.npy` file."""
        save_array(path, self._counts)

    @classmethod
    def load(cls, path: Path, documents: int) -> DocumentFrequencies:
        """Read what `save` wrote."""
        return cls(np.load(path, allow_pickle=False), documents)


def _slot(word: str) -> int:
    return zlib.crc32(word.encode("utf-8")) % SLOTS
