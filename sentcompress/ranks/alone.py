"""The collective operations that stages use, and their trivial form in a single process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from sentcompress.store.shard import Shard

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value")


@dataclass(frozen=True)
class GatheredViews:
    """The gathered views of all ranks.

    Attributes:
        views: by name, the rows of all ranks in the order of the ranks.
        own: by name, the rows of this rank among them.
    """

    views: dict[str, Tensor]
    own: dict[str, slice]


class Ranks:
    """A single process. All ranks have to call the collective methods in the same order."""

    number = 0
    count = 1

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes files, reports progress and computes dev scores."""
        return self.number == 0

    @property
    def share(self) -> Shard:
        """The share of this rank in the rows of a batch, or in other pieces of work."""
        return Shard(self.number + 1, self.count)

    def tell(self, value: Value) -> Value:
        """Broadcast a JSON value from rank 0. Waits as long as rank 0 is alive.

        Args:
            value: ignored on the other ranks.

        Returns:
            The value of rank 0.
        """
        return value

    def spread(self, value: Any) -> Any:
        """Broadcast a picklable object of any size from rank 0."""
        return value

    def collect(self, value: Value) -> list[Value]:
        """All-gather: the values of all ranks, in rank order. Waits as long as the others are alive."""
        return [value]

    def meet(self) -> None:
        """Barrier: wait for all ranks, as long as they are alive."""

    def numbers_later(self, values: Sequence[float]) -> Callable[[], list[list[float]]]:
        """Asynchronous all-gather of numbers; returns a function that waits for those of all ranks, in rank order.

        Fast enough for every step. A rank may call the function several times, or not at all.
        """
        found = [list(values)]
        return lambda: found

    def gather(self, views: Mapping[str, Tensor], lengths: Mapping[str, Sequence[int]]) -> GatheredViews:
        """All-gather tensors, concatenated along their first dimension, whose length may differ between ranks.

        Args:
            lengths: by name, the length of the view's first dimension on every rank.
        """
        return GatheredViews(dict(views), {name: slice(0, len(view)) for name, view in views.items()})

    def add(self, tensors: Sequence[Tensor]) -> None:
        """All-reduce: replace each tensor by its sum over all ranks, in place."""

    def copy(self, tensors: Sequence[Tensor]) -> None:
        """Broadcast: replace each tensor by that of rank 0, in place."""


ALONE = Ranks()
