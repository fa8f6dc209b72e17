"""The ids of a corpus, as one block of bytes: millions of Python strings would fill the memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np


class DocumentIds:
    """Ids in the order of the documents; `ids[row]` is one of them.

    Args:
        ids: to begin with.
    """

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("Q")
        self._hashes = array("q")
        for one in ids:
            self.append(one)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> bytes:
        """The id in UTF-8, whose order as bytes is that of trec_eval's `strcmp`."""
        return bytes(self._bytes[self._ends[row - 1] if row else 0 : self._ends[row]])

    def append(self, one: str) -> None:
        """Add the id of the next document."""
        self._bytes += one.encode("utf-8", "surrogatepass")
        self._ends.append(len(self._bytes))
        self._hashes.append(hash(one))

    def repeated(self) -> str | None:
        """An id that occurs twice, or None."""
        hashes = np.frombuffer(self._hashes, dtype=np.int64)
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order][1:] == hashes[order][:-1])
        # Two ids may share a hash; equal neighbours in the order of hashes are looked at themselves.
        for place in same.tolist():
            first, second = self[int(order[place])], self[int(order[place + 1])]
            if first == second:
                return first.decode("utf-8", "surrogatepass")
        return None
