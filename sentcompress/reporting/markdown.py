"""The report as Markdown, for a README: the same tables, and pictures as links to their files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from sentcompress.plain_text import Code, markdown, markdown_command, markdown_table
from sentcompress.reporting.evidence import Source
from sentcompress.reporting.parts import Section, Table
from sentcompress.reporting.report import Report


def render_markdown(report: Report, folder: str = "") -> str:
    """The whole report.

    Args:
        report: what is in it.
        folder: where the PNG files are, seen from where the text will stand; with its slash.
    """
    parts = [
        f"# {markdown(report.title)}",
        *(part for section in report.sections for part in _section(section, folder)),
    ]
    left_out = [
        f"- {markdown(Code(reference))}: {markdown(why)}" for reference, why in report.evidence.left_out.items()
    ]
    if left_out:
        parts += ["## Left out", "\n".join(left_out)]
    return "\n\n".join(parts) + "\n"


def _section(section: Section, folder: str) -> Iterator[str]:
    yield f"## {markdown(section.title)}"
    yield markdown(section.text)
    for table in section.tables:
        yield from _table(table)
    for chart in section.charts:
        yield f"![{markdown(chart.title)}]({quote(os.fsencode(f'{folder}{chart.name}.png'))})"
        yield f"*{markdown(chart.title)}.* {markdown(chart.caption)}"
        yield _sources(chart.sources)
    for quoted in section.quotes:
        yield f"### {markdown(quoted.title)}"
        yield "\n\n".join("> " + "  \n> ".join(map(markdown, text)) for text in quoted.texts)
        yield _sources(quoted.sources)
    if section.missing:
        yield "Not measured yet. Run:\n\n" + "\n".join(map(markdown_command, section.missing))


def _table(table: Table) -> Iterator[str]:
    yield f"### {markdown(table.title)}"
    yield markdown_table(table.columns, table.rows, table.heads)
    yield _sources(table.sources)


def _sources(sources: Sequence[Source]) -> str:
    return "\n".join(f"- {markdown(Code(source.reference))}: {markdown(Code(source.command))}" for source in sources)
