"""A background thread of the training loop for one job at a time; its errors are raised in the loop."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from torch import Tensor


class Background:
    """Runs jobs in their order in one thread, each after the one before has ended."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._job: Future[None] | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Wait for the last job, then start this one; raises the error of the last job."""
        self.wait()
        self._job = self._pool.submit(job)

    def check(self) -> None:
        """Raise the error of the last job, if it has ended with one."""
        if self._job is not None and self._job.done():
            self.wait()

    def wait(self) -> None:
        """Wait for the last job; raises its error, once."""
        job, self._job = self._job, None
        if job is not None:
            job.result()

    def close(self) -> None:
        """Let the last job end; its error is not raised."""
        self._pool.shutdown(wait=True)


def on_cpu(value: Any) -> Any:
    """A copy, on the CPU, of a tensor or of the tensors in dictionaries and lists of any depth."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, list | tuple):
        return type(value)(map(on_cpu, value))
    if not isinstance(value, Mapping):
        return value
    # A shallow copy first: state dicts have attributes of their own.
    copied: Any = copy.copy(value)
    for key in value:
        copied[key] = on_cpu(value[key])
    return copied
