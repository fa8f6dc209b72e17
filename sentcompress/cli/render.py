"""Results on standard output: tables, facts, paragraphs and charts.

Texts often come from files, so all of them go through `rich_text`, which escapes control characters.
"""

from __future__ import annotations

import itertools
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from rich.console import Console as RichConsole
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sentcompress.evaluation.score import Score
from sentcompress.evaluation.tables import table
from sentcompress.numeric import NOT_DEFINED
from sentcompress.plain_text import printable, printable_lines
from sentcompress.store import Artifact

# Right-aligned cells: numbers, possibly with a sign, a unit or an interval.
NUMERIC = re.compile(rf"({NOT_DEFINED}|[+-]?\d[\d,.]*( to [+-]?[\d,.]+|%|x|[kMB]| [kMG]?B)?|)")
# An artifact finished before this time was not made by this command.
STARTED = datetime.now(UTC)


class Console(RichConsole):
    """A console that leaves a closed pipe to the boundary of the command line, where rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def rich_text(text: str, style: str = "", safe: Callable[[str], str] = printable) -> Text:
    """A rich text without control characters and markup.

    `safe` escapes the text. The default also escapes line breaks; `printable_message` and `printable_lines` keep some.
    """
    return Text(safe(text), style=style)


def _cell(value: Any) -> Text:
    """A table cell; lists have one item per line."""
    return Text("\n").join(map(_cell, value)) if isinstance(value, list) else rich_text(show(value))


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
        title=None if title is None else rich_text(title),
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
            rich_text(column),
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
    grid.add_column(rich_text(""))
    grid.add_column(rich_text(""), overflow="fold")
    for key, value in facts.items():
        grid.add_row(rich_text(key.replace("_", " "), "dim"), _cell(value))
    console = stdout()
    if title:
        console.print(rich_text(title, "bold"))
    console.print(grid)


def print_entries(columns: Sequence[str], entries: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Rows of texts on standard output, each with lines of its own below it, indented and as wide as the terminal."""
    widths = [max(len(row[n]) for row in (columns, *(cells for cells, _ in entries))) for n in range(len(columns))]
    console = stdout()
    for number, (cells, lines) in enumerate([(columns, ()), *entries]):
        shown = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()
        console.print(rich_text(shown, "bold" if number == 0 else ""), soft_wrap=True)
        for line in lines:
            console.print(Padding(rich_text(line), (0, 0, 0, 4)))


def print_paths(paths: Mapping[str, str]) -> None:
    """Names and paths on standard output, a line each that is never broken, so that a path can be copied."""
    width = max(map(len, paths), default=0)
    for name, path in paths.items():
        stdout().print(rich_text(f"{name.ljust(width)}  {path}"), soft_wrap=True)


def print_text(text: str) -> None:
    """Print paragraphs; line breaks are kept."""
    stdout().print(rich_text(f"\n{text}\n", safe=printable_lines))


def print_chart(values: Sequence[float], title: str, width: int = 60, height: int = 8) -> None:
    """Print a small bar chart of a series, from 0 to its maximum."""
    top = max(values, default=0.0)
    if top <= 0:
        return
    columns = min(width, len(values))
    edges = [round(i * len(values) / columns) for i in range(columns + 1)]
    bins = [max(values[a:b]) / top for a, b in itertools.pairwise(edges)]
    console = stdout()
    console.print(rich_text(title, "bold"))
    eighths = " ▁▂▃▄▅▆▇█"
    for level in range(height, 0, -1):
        line = "".join(eighths[round(max(0.0, min(1.0, value * height - level + 1)) * 8)] for value in bins)
        label = f"{top * level / height:8.3g} " if level in (height, 1) else " " * 9
        console.print(rich_text(label + line))
    console.print(rich_text(" " * 9 + "1" + str(len(values)).rjust(columns - 1)))


def document_of(artifact: Artifact) -> dict[str, Any]:
    """An artifact for `--json`: its manifest and its path."""
    return {**artifact.manifest, "path": str(artifact.path)}


def finished(artifact: Artifact | None, next_command: str | None) -> None:
    """Print where the result is, if it is an artifact, and a suggestion for the next command."""
    console = Console(stderr=True, highlight=False)
    if artifact is not None:
        word = "Wrote" if artifact.finished >= STARTED else "Already there:"
        console.print(rich_text(f"{word} {artifact.path}"), soft_wrap=True)
    if next_command:
        console.print(rich_text(f"Next: {next_command}"), soft_wrap=True)
