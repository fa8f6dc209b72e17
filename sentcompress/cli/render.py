"""Terminal output: progress on standard error, results on standard output.

The only module that imports rich. Texts often come from files, so all of them go through `_text`, which escapes control
characters.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
)
from rich.progress import Task as RichTask
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from sentcompress.commands.options import Options, spelled
from sentcompress.evaluation.score import Score
from sentcompress.evaluation.tables import table
from sentcompress.numeric import NOT_DEFINED
from sentcompress.plain_text import printable, printable_lines, printable_message
from sentcompress.progress import Reporter
from sentcompress.progress import Task as ProgressTask
from sentcompress.quantities import told_time
from sentcompress.signals import asked
from sentcompress.store import Artifact
from sentcompress.store.running import Counter, Heartbeat, Running

# Right-aligned cells: numbers, possibly with a sign, a unit or an interval.
NUMERIC = re.compile(rf"({NOT_DEFINED}|[+-]?\d[\d,.]*( to [+-]?[\d,.]+|%|x|[kMB]| [kMG]?B)?|)")
# Columns of the terminal for a metric with its name.
METRIC_WIDTH = 27
# Seconds between the lines of progress in a log.
LOG_EVERY = 60.0
STOPPING = "stopping after this step, to save the state; press Ctrl-C again to stop at once without saving"
# An artifact finished before this time was not made by this command.
STARTED = datetime.now(UTC)


def _text(text: str, style: str = "", safe: Callable[[str], str] = printable) -> Text:
    """A rich text without control characters and markup.

    `safe` escapes the text. The default also escapes line breaks; `printable_message` and `printable_lines` keep some.
    """
    return Text(safe(text), style=style)


def _cell(value: Any) -> Text:
    """A table cell; lists have one item per line."""
    return Text("\n").join(map(_cell, value)) if isinstance(value, list) else _text(show(value))


class _Description(ProgressColumn):
    """What is being done; cut first where the line is too long for the terminal."""

    def render(self, task: RichTask) -> Text:
        shown = _text(task.description)
        shown.no_wrap, shown.overflow = True, "ellipsis"
        return shown


class _Speed(ProgressColumn):
    """Items per second, in the unit of the task."""

    def render(self, task: RichTask) -> Text:
        speed = task.finished_speed or task.speed
        return _text(f"{speed:,.0f} {task.fields['unit']}/s" if speed else "", "cyan")


class _Done(ProgressColumn):
    """Items done, of how many; empty for what cannot be counted."""

    def render(self, task: RichTask) -> Text:
        total = "?" if task.total is None else f"{task.total:,.0f}"
        return _text(f"{task.completed:,.0f}/{total}" if task.fields["unit"] else "")


class _Left(ProgressColumn):
    """The time that is left; empty until the speed is known, and for what has no known end."""

    def render(self, task: RichTask) -> Text:
        left = task.fields["counter"].seconds_left()
        return _text("" if left is None else told_time(left), "cyan")


class _TerminalTask:
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


class TerminalReporter:
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
        self._stopping = False
        self._metrics: dict[str, float | int | str | None] = {}
        self._progress = Progress(
            SpinnerColumn(),
            _Description(),
            BarColumn(bar_width=24, table_column=Column(no_wrap=True)),
            _Done(Column(no_wrap=True)),
            _Speed(Column(no_wrap=True)),
            _Left(Column(no_wrap=True)),
            console=self.console,
        )
        self._idle = Spinner("dots", _text("working", "dim"))

    @contextmanager
    def live(self) -> Iterator[TerminalReporter]:
        """Draw or log progress inside the block."""
        drawn = Live(console=self.console, refresh_per_second=8, transient=True, get_renderable=self._picture)
        with drawn if self.drawing else nullcontext(), Heartbeat(self._running, self._beat):
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

    def step(self, message: str) -> None:
        self.note(message)

    def note(self, message: str) -> None:
        if not self.quiet:
            self.console.print(_text(spelled(message, self.params), "dim", printable_message), soft_wrap=True)

    def warn(self, message: str) -> None:
        text = f"warning: {spelled(message, self.params)}"
        self.console.print(_text(text, "yellow", printable_message), soft_wrap=True)

    def _beat(self) -> None:
        """Once a second: log a line if it is time, and say that a signal waits until the state can be saved."""
        if asked() is not None and not self._stopping:
            self._stopping = True
            self.note(STOPPING)
        if not self.drawing and time.monotonic() - self._logged >= LOG_EVERY:
            self._logged = time.monotonic()
            if line := str(self._running.snapshot()):
                self.note(line)

    def _picture(self) -> Group:
        """The latest metrics and the progress bars; never nothing, which would look like a process that hangs."""
        shown = self._progress if self._progress.tasks else self._idle
        return Group(_metrics_table(self._metrics, self.console.width), shown) if self._metrics else Group(shown)


def _metrics_table(values: Mapping[str, float | int | str | None], width: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    across = max(1, width // METRIC_WIDTH)
    shown = [
        ("time left", told_time(float(value))) if key == "seconds_left" else (key.replace("_", " "), show(value))
        for key, value in values.items()
        if value is not None
    ]
    for start in range(0, len(shown), across):
        row = shown[start : start + across]
        grid.add_row(*(_text(f"{key} ", "dim") + _text(value, "bold") for key, value in row))
    return grid


def show(value: Any) -> str:
    """A value formatted for display: numbers with about four digits and thousands separators."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if not math.isfinite(value):
            return NOT_DEFINED
        if value == 0 or 0.01 <= abs(value) < 10_000:
            return f"{value:.4g}" if abs(value) < 10 else f"{value:,.2f}"
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.2e}"
    return "" if value is None else str(value)


@contextmanager
def reporting(quiet: bool = False, params: type[Options] | None = None) -> Iterator[Reporter]:
    """A reporter for one command, which spells the options `params` as flags."""
    reporter = TerminalReporter(quiet, params)
    with reporter.live():
        yield reporter


def stdout() -> Console:
    """The console for results; wide if it is not a terminal, so that tables in files and pipes are not cut."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    title: str | None = None,
    *,
    whole: Sequence[str] = (),
    dense: bool = False,
) -> None:
    """Print a table; columns of numbers are right-aligned, and lines in the columns `whole` are never wrapped.

    `dense` tables have one space between columns. If a table is too wide, names and intervals are wrapped before
    numbers are.
    """
    table = Table(
        title=None if title is None else _text(title),
        title_justify="left",
        box=None if not rows else _box(),
        header_style="bold",
        collapse_padding=dense,
        pad_edge=not dense,
    )
    for number, column in enumerate(columns):
        numeric = bool(rows) and all(_is_numeric(row[number]) for row in rows)
        justify: Literal["right", "left"] = "right" if numeric else "left"
        plain = [len(row[number]) for row in rows if " to " not in row[number]] if dense and numeric else []
        table.add_column(
            _text(column),
            justify=justify,
            overflow="fold",
            no_wrap=column in whole,
            min_width=max(plain, default=None),
        )
    for row in rows:
        table.add_row(*map(_cell, row))
    stdout().print(table)


def _is_numeric(value: Any) -> bool:
    """Whether a cell is right-aligned: a number, or the text of one with its unit, its sign or its interval."""
    if isinstance(value, str):
        return bool(NUMERIC.fullmatch(value))
    return isinstance(value, int | float | None)


def _box() -> Any:
    from rich import box

    return box.SIMPLE_HEAD


def print_scores(scores: Sequence[Score], labels: Mapping[str, str], what: str, title: str) -> None:
    """The table of an evaluation on standard output; see `evaluation.tables.table`."""
    columns, rows = table(scores, labels, what)
    print_table(columns, rows, title, dense=True)


def print_facts(facts: Mapping[str, Any], title: str | None = None) -> None:
    """Print names and values, one per line."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(_text(""))
    grid.add_column(_text(""), overflow="fold")
    for key, value in facts.items():
        grid.add_row(_text(key.replace("_", " "), "dim"), _cell(value))
    console = stdout()
    if title:
        console.print(_text(title, "bold"))
    console.print(grid)


def print_entries(columns: Sequence[str], entries: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Rows of texts on standard output, each with lines of its own below it, indented and as wide as the terminal."""
    widths = [max(len(row[n]) for row in (columns, *(cells for cells, _ in entries))) for n in range(len(columns))]
    console = stdout()
    for number, (cells, lines) in enumerate([(columns, ()), *entries]):
        shown = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        console.print(_text(shown, "bold" if number == 0 else ""), soft_wrap=True)
        for line in lines:
            console.print(Padding(_text(line), (0, 0, 0, 4)))


def print_paths(paths: Mapping[str, str]) -> None:
    """Names and paths on standard output, a line each that is never broken, so that a path can be copied."""
    width = max(map(len, paths), default=0)
    for name, path in paths.items():
        stdout().print(_text(f"{name.ljust(width)}  {path}"), soft_wrap=True)


def print_text(text: str) -> None:
    """Print paragraphs; line breaks are kept."""
    stdout().print(_text(f"\n{text}\n", safe=printable_lines))


def print_chart(values: Sequence[float], title: str, width: int = 60, height: int = 8) -> None:
    """Print a small bar chart of a series, from 0 to its maximum."""
    top = max(values, default=0.0)
    if top <= 0:
        return
    columns = min(width, len(values))
    edges = [round(i * len(values) / columns) for i in range(columns + 1)]
    bins = [max(values[a:b]) / top for a, b in itertools.pairwise(edges)]
    console = stdout()
    console.print(_text(title, "bold"))
    eighths = " ▁▂▃▄▅▆▇█"
    for level in range(height, 0, -1):
        line = "".join(eighths[round(max(0.0, min(1.0, value * height - level + 1)) * 8)] for value in bins)
        label = f"{top * level / height:8.3g} " if level in (height, 1) else " " * 9
        console.print(_text(label + line))
    console.print(_text(" " * 9 + "1" + str(len(values)).rjust(columns - 1)))


def document_of(artifact: Artifact) -> dict[str, Any]:
    """An artifact for `--json`: its manifest and its path."""
    return {**artifact.manifest, "path": str(artifact.path)}


def finished(artifact: Artifact | None, next_command: str | None) -> None:
    """Print where the result is, if it is an artifact, and a suggestion for the next command."""
    console = Console(stderr=True, highlight=False)
    if artifact is not None:
        word = "Wrote" if artifact.finished >= STARTED else "Already there:"
        console.print(_text(f"{word} {artifact.path}"), soft_wrap=True)
    if next_command:
        console.print(_text(f"Next: {next_command}"), soft_wrap=True)
