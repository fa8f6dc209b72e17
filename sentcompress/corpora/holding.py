"""Limits on the text held in memory: batches of a stream, and data sets that are read completely."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sentcompress.errors import InputError

# Characters per batch; only reached if lines are megabytes long.
BATCH_CHARACTERS = 2**25
# Approximate bytes of a data set: its characters, plus the overhead of each Python string.
LARGEST_SET = 2**30
_PER_TEXT = 100

Item = TypeVar("Item")


def batches(items: Iterable[Item], count: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """The items in lists of `count`, or fewer if they are large.

    Args:
        items: consumed one batch at a time.
        count: the maximum number of items in a batch.
        size: returns the characters of an item; a batch ends when it reaches BATCH_CHARACTERS.
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
    """Counts the text of a data set that is held in memory.

    Args:
        name: the file name used in errors.
    """

    def __init__(self, name: object) -> None:
        self._name = name
        self._size = 0

    def add(self, *texts: str) -> None:
        """Add texts to the count.

        Raises:
            InputError: if the data set exceeds LARGEST_SET.
        """
        self._size += sum(map(len, texts)) + _PER_TEXT * len(texts)
        if self._size > LARGEST_SET:
            raise InputError(
                f"{self._name} holds more than {LARGEST_SET // 2**20} MiB of text, too much to keep in memory",
                "use a smaller data set",
            )
