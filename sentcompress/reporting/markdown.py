"""The report as Markdown, for a README: the same tables, and pictures as links to their files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sentcompress.reporting.evidence import Source
from sentcompress.reporting.parts import Section, Table
from sentcompress.reporting.report import Report


def render_markdown(report: Report, folder: str = "") -> str:
    """The whole report.

    Args:
        report: what is in it.
        folder: where the PNG files are, seen from where the text will stand; with its slash.
    """
    parts = [f"# {report.title}", *(part for section in report.sections for part in _section(section, folder))]
    left_out = [f"- `{reference}`: {why}" for reference, why in report.evidence.left_out.items()]
    if left_out:
        parts += ["## Left out", "\n".join(left_out)]
    return "\n\n".join(parts) + "\n"


def _section(section: Section, folder: str) -> Iterator[str]:
    yield f"## {section.title}"
    yield section.text
    for table in section.tables:
        yield from _table(table)
    for chart in section.charts:
        yield f"![{chart.title}]({folder}{chart.name}.png)"
        yield f"*{chart.title}.* {chart.caption}"
        yield _sources(chart.sources)
    for quote in section.quotes:
        yield f"### {quote.title}"
        yield "\n\n".join("> " + "  \n> ".join(map(_inline, text)) for text in quote.texts)
        yield _sources(quote.sources)
    if section.missing:
        yield "Not measured yet. Run:\n\n" + "\n".join(f"    {command}" for command in section.missing)


def _table(table: Table) -> Iterator[str]:
    yield f"### {table.title}"
    rule = ["---" if number < table.heads else "---:" for number in range(len(table.columns))]
    yield "\n".join(_row(cells) for cells in (table.columns, rule, *table.rows))
    yield _sources(table.sources)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_inline, cells))} |"


def _inline(text: str) -> str:
    """Text within a line: what Markdown would take for markup is escaped."""
    return "".join(f"\\{c}" if c in "\\`*_|<[" else c for c in text.replace("\n", " "))


def _sources(sources: Sequence[Source]) -> str:
    return "\n".join(f"- `{source.reference}`: `{source.command}`" for source in sources)
