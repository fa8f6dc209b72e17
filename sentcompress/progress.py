"""Progress reporting of stages.

Stages call a `Reporter`. The command line passes one that draws progress bars in the terminal; by default, notes go to
`logging` and warnings to `warnings`.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sentcompress.errors import SentcompressWarning
from sentcompress.quantities import told_time

PACKAGE = Path(__file__).parent
# Metrics that are shown to whoever does not follow the training: loss, dev scores and their name, the time left.
TOLD = ("loss", "dev", "best", "measure", "seconds_left")


class Task:
    """One progress bar; as it is here, it shows nothing."""

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more items as done."""

    def set_total(self, total: int | None) -> None:
        """Set the total number of items, once it is known."""

    def set_work(self, stretches: Sequence[tuple[int, float]]) -> None:
        """Set how much work the items are, if it differs between items, to estimate the time left.

        Args:
            stretches: items, and their work in any unit, of one stretch after another.
        """


class Reporter:
    """Receives the progress, metrics, notes and warnings of a stage; as it is here, it shows nothing."""

    @contextmanager
    def track(self, description: str, total: int | None = None, unit: str = "sentences") -> Iterator[Task]:
        """Show a progress bar within a `with` block; `total` and `Task.advance` count items of `unit`."""
        yield Task()

    @contextmanager
    def phase(self, description: str) -> Iterator[None]:
        """Show the current activity within a `with` block, if its items cannot be counted."""
        yield

    @contextmanager
    def recorded(self, path: Path) -> Iterator[None]:
        """Within a `with` block, keep the progress also in the file `path` (`store.running`); remove it at the end."""
        yield

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        """Show the latest training metrics (loss, its terms, learning rate, dev score, ...).

        `measure` is the name of the dev score. TOLD are those that an `Overview` passes on.
        """

    def step(self, message: str) -> None:
        """Report which of several steps begins or resumes; an `Overview` passes it on, but no notes."""
        self.note(message)

    def note(self, message: str) -> None:
        """Report useful information, such as what was selected or skipped."""

    def warn(self, message: str) -> None:
        """Report something that the user may want to change."""


SILENT = Reporter()


# Seconds over the time that are told; to check finished stages again takes less.
TOLD_OVER = 60.0


class Overview(Reporter):
    """Passes on steps, progress and warnings, each once, but neither notes nor details of the training.

    Args:
        ends: when all steps should be done, by `time.monotonic()`. Steps then tell the time that is left, or by how
            much it is exceeded.
    """

    def __init__(self, reporter: Reporter, ends: float | None = None) -> None:
        self._reporter, self._ends = reporter, ends
        self._warned: set[str] = set()
        self.track = reporter.track  # type: ignore[method-assign]
        self.phase = reporter.phase  # type: ignore[method-assign]
        self.recorded = reporter.recorded  # type: ignore[method-assign]

    def step(self, message: str) -> None:
        self._reporter.step(", ".join((message, *self._left())))

    def _left(self) -> Iterator[str]:
        left = self._ends - time.monotonic() if self._ends is not None else 0.0
        if left > 0:
            yield f"about {told_time(left)} left in all"
        elif left < -TOLD_OVER:
            yield f"{told_time(-left)} over the time of the plan"

    def warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            self._reporter.warn(message)

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        self._reporter.metrics({name: values[name] for name in TOLD if name in values})


class LoggingReporter(Reporter):
    """Logs notes as INFO and training metrics as DEBUG to the logger `sentcompress`; warns with SentcompressWarning."""

    _logger = logging.getLogger("sentcompress")

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        self._logger.debug("%s", dict(values))

    def note(self, message: str) -> None:
        self._logger.info("%s", message)

    def warn(self, message: str) -> None:
        warnings.warn(message, SentcompressWarning, stacklevel=_frames_of_ours())


LOGGED = LoggingReporter()


def _frames_of_ours() -> int:
    """The `stacklevel` of the first caller outside this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
