"""Progress, metrics, notes and warnings of a running command, on standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn
from rich.progress import Task as RichTask
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from sentcompress.cli.render import Console, rich_text, show
from sentcompress.commands.options import Options
from sentcompress.commands.spelling import spelled
from sentcompress.numeric import rate
from sentcompress.plain_text import printable, printable_message
from sentcompress.progress import Reporter
from sentcompress.progress import Task as ProgressTask
from sentcompress.quantities import told_time
from sentcompress.ranks.launch import by_rank
from sentcompress.signals import Telling
from sentcompress.store.running import Counter, Heartbeat, Running

# Columns of the terminal for a metric with its name.
METRIC_WIDTH = 27
# Columns of a terminal that has room for a full bar.
FULL_WIDTH = 80
# Seconds between the lines of progress in a log.
LOG_EVERY = 60.0


class _Description(ProgressColumn):
    """The current activity; shortened first if the line is too long for the terminal."""

    def render(self, task: RichTask) -> Text:
        shown = rich_text(task.description)
        shown.no_wrap, shown.overflow = True, "ellipsis"
        return shown


class _Speed(ProgressColumn):
    """Items per second, in the unit of the task."""

    def render(self, task: RichTask) -> Text:
        speed = task.finished_speed or task.speed
        return rich_text(f"{rate(speed)} {task.fields['unit']}/s" if speed else "", "cyan")


class _Done(ProgressColumn):
    """Items done, of how many; empty for what cannot be counted."""

    def render(self, task: RichTask) -> Text:
        total = "?" if task.total is None else f"{task.total:,.0f}"
        return rich_text(f"{task.completed:,.0f}/{total}" if task.fields["unit"] else "")


class _Left(ProgressColumn):
    """The time that is left; empty until the speed is known, and for what has no known end."""

    def render(self, task: RichTask) -> Text:
        left = task.fields["counter"].seconds_left()
        return rich_text("" if left is None else told_time(left), "cyan")


class _TerminalTask(ProgressTask):
    """A progress bar, and what logs and `status` are told."""

    def __init__(self, progress: Progress, task: Any, counter: Counter) -> None:
        self._progress, self._task, self._counter = progress, task, counter

    def advance(self, amount: int = 1) -> None:
        self._progress.advance(self._task, amount)
        self._counter.advance(amount)

    def set_total(self, total: int | None) -> None:
        self._progress.update(self._task, total=total)
        self._counter.set_total(total)

    def set_work(self, stretches: Sequence[tuple[int, float]]) -> None:
        self._counter.set_work(stretches)


class TerminalReporter(Reporter):
    """Shows progress bars and training metrics if standard error is a terminal, else a line a minute.

    Messages and warnings are always shown.
    """

    def __init__(self, quiet: bool, params: type[Options] | None = None) -> None:
        self.params = params
        self.console = Console(stderr=True, highlight=False)
        self.quiet = quiet
        self.drawing = self.console.is_terminal and not quiet
        self._running = Running()
        self._logged = time.monotonic()
        self._metrics: dict[str, float | int | str | None] = {}
        self._progress = Progress(
            SpinnerColumn(),
            _Description(),
            # Of a narrow terminal, a bar of full width would leave no room for the description.
            BarColumn(bar_width=24 if self.console.width >= FULL_WIDTH else 8, table_column=Column(no_wrap=True)),
            _Done(Column(no_wrap=True)),
            _Speed(Column(no_wrap=True)),
            _Left(Column(no_wrap=True)),
            console=self.console,
        )
        self._idle = Spinner("dots", rich_text("working", "dim"))

    @contextmanager
    def live(self) -> Iterator[TerminalReporter]:
        """Draw or log progress inside the block."""
        drawn = Live(console=self.console, refresh_per_second=8, transient=True, get_renderable=self._picture)
        # The outermost block: while a picture is on the screen, only its console can write above it.
        with Telling(self._stopping), drawn if self.drawing else nullcontext(), Heartbeat(self._running, self._beat):
            yield self

    @contextmanager
    def track(self, description: str, total: int | None = None, unit: str = "sentences") -> Iterator[ProgressTask]:
        if not self._progress.tasks:
            self._metrics.clear()  # those of an earlier phase
        with self._running.track(description, total, unit) as counter:
            task = self._progress.add_task(printable(description), total=total, unit=unit, counter=counter)
            try:
                yield _TerminalTask(self._progress, task, counter)
            finally:
                self._progress.remove_task(task)

    @contextmanager
    def phase(self, description: str) -> Iterator[None]:
        with self.track(description, unit=""):
            yield

    @contextmanager
    def recorded(self, path: Path) -> Iterator[None]:
        with self._running.recorded(path):
            yield

    def metrics(self, values: Mapping[str, float | int | str | None]) -> None:
        self._metrics.update(values)
        self._running.metrics(values)

    def note(self, message: str) -> None:
        if not self.quiet:
            self.console.print(rich_text(spelled(message, self.params), "dim", printable_message), soft_wrap=True)

    def warn(self, message: str) -> None:
        text = f"warning: {spelled(message, self.params)}"
        self.console.print(rich_text(text, "yellow", printable_message), soft_wrap=True)

    def _stopping(self, line: str) -> None:
        """Show that a signal was received, also with --quiet, because the user caused it."""
        self.console.print(rich_text(by_rank(line), "yellow"), soft_wrap=True)

    def _beat(self) -> None:
        """Once a second: log a line if it is time."""
        if not self.drawing and time.monotonic() - self._logged >= LOG_EVERY:
            self._logged = time.monotonic()
            if line := str(self._running.snapshot()):
                self.note(line)

    def _picture(self) -> Group:
        """The latest metrics and the progress bars; never empty, so that the process does not seem to hang."""
        shown = self._progress if self._progress.tasks else self._idle
        metrics = dict(self._metrics)  # drawn by a thread of rich, while the training adds to them
        return Group(_metrics_table(metrics, self.console.width), shown) if metrics else Group(shown)


def _metrics_table(values: Mapping[str, float | int | str | None], width: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    across = max(1, width // METRIC_WIDTH)
    measure = values.get("measure") if width >= FULL_WIDTH else None
    labels = {"seconds_left": "time left", **({"dev": f"dev ({measure})"} if measure else {})}
    shown = [
        (labels.get(key, key.replace("_", " ")), told_time(float(value)) if key == "seconds_left" else show(value))
        for key, value in values.items()
        if value is not None and key != "measure"
    ]
    for start in range(0, len(shown), across):
        row = shown[start : start + across]
        grid.add_row(*(rich_text(f"{key} ", "dim") + rich_text(value, "bold") for key, value in row))
    return grid


@contextmanager
def reporting(quiet: bool = False, params: type[Options] | None = None) -> Iterator[Reporter]:
    """A reporter for one command, which spells the options `params` as flags."""
    reporter = TerminalReporter(quiet, params)
    with reporter.live():
        yield reporter
