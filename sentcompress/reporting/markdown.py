"""The report as Markdown, for a README: the same tables, and pictures as links to their files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from sentcompress.plain_text import Code, markdown, markdown_command, markdown_table
from sentcompress.reporting.evidence import Source
from sentcompress.reporting.parts import Report, Section, Table

# The number of each source in the list of them.
Numbers = Mapping[Source, int]


def render_markdown(report: Report, folder: str = "") -> str:
    """The whole report.

    Args:
        report: what is in it.
        folder: where the PNG files are, seen from where the text will stand; with its slash.
    """
    numbers = {source: number for number, source in enumerate(report.sources(), start=1)}
    parts = [
        f"# {markdown(report.heading)}",
        *(markdown(line) for line in report.verdict),
        *(part for section in report.sections for part in _section(section, folder, numbers)),
    ]
    if numbers:
        listed = (f"{n}. {markdown(Code(s.reference))}: {markdown(Code(s.command))}" for s, n in numbers.items())
        parts += ["## Sources", "\n".join(listed)]
    left_out = [
        f"- {markdown(Code(reference))}: {markdown(why)}" for reference, why in report.evidence.left_out.items()
    ]
    if left_out:
        parts += ["## Left out", "\n".join(left_out)]
    return "\n\n".join(parts) + "\n"


def _section(section: Section, folder: str, numbers: Numbers) -> Iterator[str]:
    yield f"## {markdown(section.title)}"
    yield markdown(section.text)
    for table in section.tables:
        yield from _table(table, numbers)
    for chart in section.charts:
        yield f"![{markdown(chart.title)}]({quote(os.fsencode(f'{folder}{chart.name}.png'))})"
        yield f"*{markdown(chart.title)}.* {markdown(chart.caption)}"
        yield _sources(chart.sources, numbers)
    for quoted in section.quotes:
        yield f"### {markdown(quoted.title)}"
        yield "\n\n".join("> " + "  \n> ".join(map(markdown, text)) for text in quoted.texts)
        yield _sources(quoted.sources, numbers)
    if section.missing:
        yield "Not measured yet. Run:\n\n" + "\n".join(map(markdown_command, section.missing))


def _table(table: Table, numbers: Numbers) -> Iterator[str]:
    yield f"### {markdown(table.title)}"
    yield markdown_table(table.columns, table.rows, table.heads)
    yield _sources(table.sources, numbers)


def _sources(sources: Sequence[Source], numbers: Numbers) -> str:
    return f"Sources: {', '.join(map(str, sorted(numbers[source] for source in sources)))}."
