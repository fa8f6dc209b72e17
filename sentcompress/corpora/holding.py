"""How much text is kept in memory at a time: batches of streams, and sets that are read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sentcompress.errors import InputError

# Characters of a batch; sentences never come near, lines of megabytes do.
BATCH_CHARACTERS = 2**25
# Bytes of a test set, about: its characters, and what Python needs for each text besides.
LARGEST_SET = 2**30
_PER_TEXT = 100

Item = TypeVar("Item")


def batches(items: Iterable[Item], count: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The items in lists of `count`, or of fewer where they are large.

    Args:
        items: read only as far as a batch needs.
        count: the most items of a batch.
        size: the characters of an item; a batch ends with the one that brings it to BATCH_CHARACTERS.
    """
    batch: list[Item] = []
    characters = 0
    for item in items:
        batch.append(item)
        characters += size(item)
        if len(batch) == count or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


class Held:
    """Counts the texts of a set that is kept in memory.

    Args:
        name: the file, as errors call it.
    """

    def __init__(self, name: object) -> None:
        self._name = name
        self._size = 0

    def add(self, *texts: str) -> None:
        """Count some texts.

        Raises:
            InputError: if the set is larger than LARGEST_SET.
        """
        self._size += sum(map(len, texts)) + _PER_TEXT * len(texts)
        if self._size > LARGEST_SET:
            raise InputError(
                f"{self._name} holds more than {LARGEST_SET // 2**20} MiB of text, which is kept in memory",
                "give a smaller set",
            )
