"""The numbers that ranks exchange after every training step: tokens, time, and whether to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from torch import Tensor, nn

from sentcompress import signals
from sentcompress.ranks.alone import Ranks
from sentcompress.training.run_state import Progress


class Agreement:
    """Counts steps so that all ranks do the same in each, without waiting for each other.

    The numbers of a step are exchanged while the next step is computed, and all ranks use them after that one. A
    single process uses its own at once.

    Args:
        progress: its `tokens` are those of all ranks, and its `seconds` are by the clock of rank 0; one step late if
            there are several ranks.
    """

    def __init__(self, ranks: Ranks, progress: Progress) -> None:
        self._ranks, self._progress = ranks, progress
        self._seconds = progress.seconds
        self._late: Callable[[], list[list[float]]] | None = None
        self._asked: list[int] = []

    def count(self, tokens: int, seconds: float) -> None:
        """Count a step of this rank: the tokens of its share, and how long it took."""
        self._seconds += seconds
        sent = self._ranks.numbers_later((tokens, self._seconds, signals.asked() or 0))
        if self._ranks.count == 1:
            self._take(sent())
            return
        if self._late is not None:
            self._take(self._late())
        self._late = sent

    def _take(self, by_rank: list[list[float]]) -> None:
        self._progress.tokens += _tokens(by_rank)
        self._progress.seconds = by_rank[0][1]
        self._asked = [int(number) for _, _, number in by_rank if number]

    def check(self) -> None:
        """Raise a pending signal where the state is complete: after the same step on all ranks.

        Raises:
            StoppedError: if this process, or any of its ranks, was asked to stop.
        """
        if self._ranks.count == 1:
            signals.check()
        elif self._asked:
            raise signals.stopped(signals.strongest(self._asked), whole=True)

    def check_within_step(self) -> None:
        """Raise a pending signal in the middle of a step, which a single process can leave unfinished."""
        if self._ranks.count == 1:
            signals.check()

    def before_update(self) -> AbstractContextManager[None]:
        """Enclose the part of a step that changes no state: a single process can leave it on a signal if it is long."""
        return signals.Unchanged() if self._ranks.count == 1 else nullcontext()

    @contextmanager
    def hearing(self, model: nn.Module) -> Iterator[None]:
        """Handle signals during backward passes inside the block.

        A backward pass is a single call of torch, and Python runs signal handlers only while it executes Python code.
        A hook on each gradient, which does nothing, lets it do so. Parameters on a GPU need no hooks: these would run
        in another thread, and the call returns soon.
        """
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad and not parameter.is_cuda]
        hooks = [one.register_post_accumulate_grad_hook(_nothing) for one in trained]  # type: ignore[no-untyped-call]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def totals(self) -> tuple[int, float]:
        """The `tokens` and the `seconds` of `progress` with the last step, which waits until all ranks have done it.

        The seconds are by this rank's own clock: only those of rank 0 are saved.
        """
        late = self._late() if self._late is not None else []
        return self._progress.tokens + _tokens(late), self._seconds


def _tokens(by_rank: list[list[float]]) -> int:
    return int(sum(tokens for tokens, _, _ in by_rank))


def _nothing(_: Tensor) -> None:
    pass
