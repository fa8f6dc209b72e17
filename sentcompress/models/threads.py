"""The threads that torch computes with on a CPU. The command line imports this module, so it imports torch late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
# Each worker holds the activations of its item, and the interpreter runs one worker at a time.
MOST_WORKERS = 16


@contextmanager
def one_thread() -> Iterator[None]:
    """Make torch compute on one thread inside the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`function` of each item, in order, with torch's threads divided among the items instead of sharing each.

    Threads that share one item wait for each other after every operator, and small operators use only one of them.
    All threads work on the first item, alone, because some models fill caches when they run for the first time.
    Thread-local settings of torch, such as inference mode, have to be made in `function`.

    Args:
        items: they are taken a few ahead of the results, by the calling thread.

    Raises:
        Whatever `function` raises, at the place of its item. What has not begun is not computed then.
    """
    import torch

    threads = torch.get_num_threads()
    workers = min(threads, MOST_WORKERS)
    items = iter(items)
    yield from map(function, items if workers == 1 else islice(items, 1))
    ahead = list(islice(items, workers))
    workers = min(workers, len(ahead))
    if workers < 2:
        yield from map(function, ahead)
        return
    with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(threads // workers,)) as pool:
        pending: deque[Future[Result]] = deque(pool.submit(function, item) for item in ahead)
        try:
            while pending:
                # One more than the workers, so that none waits for the caller.
                pending.extend(pool.submit(function, item) for item in islice(items, workers + 1 - len(pending)))
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
            pool.shutdown()
            # Each worker has set the number that new threads, and the matrix product of float32, take.
            torch.set_num_threads(threads)
