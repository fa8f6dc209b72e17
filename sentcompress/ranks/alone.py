"""What a stage asks of its ranks, and how a process answers that runs alone."""

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
    """The views of all ranks.

    Attributes:
        views: by name, the rows of all ranks in the order of the ranks.
        own: by name, the rows of this rank among them.
    """

    views: dict[str, Tensor]
    own: dict[str, slice]


class Ranks:
    """A single process. Every method that exchanges something has to be called by all ranks in the same order."""

    number = 0
    count = 1

    @property
    def first(self) -> bool:
        """Whether this is rank 0, which writes files, reports progress and computes dev scores."""
        return self.number == 0

    @property
    def share(self) -> Shard:
        """Which rows of a batch, or other pieces of work, are this rank's."""
        return Shard(self.number + 1, self.count)

    def tell(self, value: Value) -> Value:
        """The value that rank 0 gives, on all ranks. Waits as long as rank 0 lives.

        Args:
            value: something that JSON can hold; ignored on the other ranks.
        """
        return value

    def spread(self, value: Any) -> Any:
        """Like `tell`, for anything that can be pickled, and of any size."""
        return value

    def collect(self, value: Value) -> list[Value]:
        """The values of all ranks, in their order. Waits as long as the others live."""
        return [value]

    def meet(self) -> None:
        """Wait until all ranks are here, as long as they live."""

    def numbers_later(self, values: Sequence[float]) -> Callable[[], list[list[float]]]:
        """Begin an exchange of numbers; returns a function that waits for those of all ranks, in their order.

        Fast enough for every step. A rank can work on in the meantime. It may call the function several times, or not
        at all.
        """
        found = [list(values)]
        return lambda: found

    def gather(self, views: Mapping[str, Tensor], lengths: Mapping[str, Sequence[int]]) -> GatheredViews:
        """The views of all ranks, concatenated along their first dimension, which may differ.

        Args:
            lengths: by name, the length of the view's first dimension on every rank.
        """
        return GatheredViews(dict(views), {name: slice(0, len(view)) for name, view in views.items()})

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks, in place."""

    def copy(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by that of rank 0, in place."""


ALONE = Ranks()
