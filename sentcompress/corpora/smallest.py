"""A random sample of a stream in bounded memory: what has the smallest hashes (bottom-k sampling)."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Smallest(Generic[Value]):
    """Keeps the values with the smallest numbers; of equal numbers, only the first counts.

    Args:
        most: the number of values to keep, at least one.

    Attributes:
        complete: whether all values with distinct numbers were kept.
    """

    def __init__(self, most: int) -> None:
        self.complete = True
        self._most = most
        self._kept: dict[int, Value] = {}
        self._largest: list[int] = []  # a heap of the negated numbers

    def add(self, number: int, value: Value) -> None:
        """Keep a value if its number is new and among the smallest."""
        if number in self._kept:
            return
        if len(self._kept) == self._most and number > -self._largest[0]:
            self.complete = False
            return
        self._kept[number] = value
        heapq.heappush(self._largest, -number)
        if len(self._kept) > self._most:
            self.complete = False
            del self._kept[-heapq.heappop(self._largest)]

    def values(self) -> list[Value]:
        """The kept values, in the order of their numbers."""
        return [value for _, value in sorted(self._kept.items(), key=lambda item: item[0])]
