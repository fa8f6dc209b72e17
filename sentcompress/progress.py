"""What a stage tells while it runs, without knowing who listens.

Stages call a `Reporter`; the command line passes one that draws bars on a terminal, tests and library
users pass nothing and hear nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol


class Task(Protocol):
    """One progress bar."""

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more items as done."""

    def set_total(self, total: int | None) -> None:
        """Say how many items there are in all, once that is known."""


class Reporter(Protocol):
    """Where a stage sends its progress, numbers and remarks."""

    @contextmanager
    def track(self, description: str, total: int | None = None, unit: str = "sentences") -> Iterator[Task]:
        """Show a bar for the time of a `with` block; `total` and the advances count `unit`."""
        yield from ()

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        """Show the newest training numbers (loss terms, learning rate, dev score, ...)."""

    def note(self, message: str) -> None:
        """Tell something worth knowing: what was picked, what was skipped."""

    def warn(self, message: str) -> None:
        """Tell something that the user may want to change."""


class _SilentTask:
    def advance(self, amount: int = 1) -> None:
        pass

    def set_total(self, total: int | None) -> None:
        pass


class SilentReporter:
    """Hears everything, says nothing."""

    @contextmanager
    def track(self, description: str, total: int | None = None, unit: str = "sentences") -> Iterator[Task]:
        yield _SilentTask()

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        pass

    def note(self, message: str) -> None:
        pass

    def warn(self, message: str) -> None:
        pass


SILENT: Reporter = SilentReporter()
