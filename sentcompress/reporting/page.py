"""The report as one self-contained HTML page: style, figures and tables inline, no external resources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from sentcompress.quantities import counted
from sentcompress.reporting.drawing import COLOURS
from sentcompress.reporting.evidence import Source
from sentcompress.reporting.markdown import Numbers
from sentcompress.reporting.parts import Chart, Report, Section, Table

# Words shorter than this many characters are not broken.
SHORT = 30
# Spaces in cells at which a line is not broken.
KEPT_TOGETHER = re.compile(r" (?=to |[+-]?\d|[kMG]?B\b)")

STYLE = """
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1.25rem 4rem; max-width: 75rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 2.75rem 0 .5rem; padding-top: .75rem; border-top: 1px solid var(--grid); }
h3 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; overflow-wrap: anywhere; }
p { margin: .5rem 0; max-width: 48rem; }
a { color: var(--series1); }
nav a { display: inline-block; margin: 0 1rem .25rem 0; }
code { font: .86em/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
code span { white-space: nowrap; }
.soft, figcaption, summary { color: var(--soft); font-size: .9rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.75rem 2rem;
  margin: 1.25rem 0; align-items: start; }
figure { margin: 0; max-width: 32rem; min-width: 0; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
figcaption strong { color: var(--ink); font-size: 1rem; display: block; }
.verdict { font-size: 1.1rem; }
.sources { margin: .35rem 0 0; font-size: .85rem; color: var(--soft); }
ol.sources li { margin: .3rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem .3rem 0; text-align: right; vertical-align: top; border-bottom: 1px solid var(--grid); }
th { font-weight: 600; color: var(--soft); vertical-align: bottom; }
th.name, td.name { text-align: left; overflow-wrap: anywhere; min-width: 7.5rem; }
.wide { overflow-x: auto; }
.missing { border: 1px dashed var(--soft); border-radius: .4rem; padding: .6rem .9rem; margin: 1rem 0;
  max-width: 48rem; }
.missing code { display: block; }
blockquote { margin: .6rem 0; padding-left: .9rem; border-left: 3px solid var(--grid); }
details { max-width: 60rem; margin: .35rem 0; }
@media (max-width: 46rem) {
  body { padding: 1rem .9rem 3rem; }
  h1 { font-size: 1.4rem; }
  /* Each row becomes a card, so that no table is wider than the screen. */
  table, tbody, tr, td { display: block; }
  thead { position: absolute; clip-path: inset(50%); height: 1px; width: 1px; overflow: hidden; white-space: nowrap; }
  tr { border-bottom: 1px solid var(--soft); padding: .45rem 0; }
  td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .1rem 0; text-align: right; }
  td:empty { display: none; }
  td::before { content: attr(data-label); color: var(--soft); text-align: left; }
  td.name { font-weight: 600; text-align: left; min-width: 0; }
  td.name::before { display: none; }
}
@media print { .charts { display: block; } figure { break-inside: avoid; margin-bottom: 1rem; } }
"""


def render_page(report: Report, pictures: Mapping[str, str]) -> str:
    """The HTML page, which is also well-formed XML.

    Args:
        report: the report.
        pictures: chart name -> its `<svg>` element.
    """
    evidence = report.evidence
    about = [name for reference, name in evidence.names.items() if evidence.compared(reference)]
    summary = f"{counted(len(about), 'model')}, {counted(len(evidence.evaluations), 'evaluation')}"
    head = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8" />',
        '<meta name="viewport" content="width=device-width, initial-scale=1" />',
        '<meta name="color-scheme" content="light dark" />',
        f"<title>{escape(report.title)}</title>",
        f"<style>{_variables()}{STYLE}</style>",
        "</head>",
        "<body>",
        "<header>",
        f"<h1>{escape(report.heading)}</h1>",
        *(f'<p class="verdict">{_cell(line)}</p>' for line in report.verdict),
        f'<p class="soft">{summary} in '
        f"<code>{escape(evidence.work)}</code>; made by <code>sentcompress report</code> on "
        f"{report.made:%Y-%m-%d %H:%M} UTC.</p>",
        f"<nav>{''.join(_link(section) for section in report.sections)}</nav>",
        "</header>",
    ]
    numbers = {source: number for number, source in enumerate(report.sources(), start=1)}
    body = [part for section in report.sections for part in _section(section, pictures, numbers)]
    return "\n".join([*head, *body, *_all_sources(numbers), *_left_out(report), "</body>", "</html>"]) + "\n"


def _variables() -> str:
    light, dark = ("".join(f"--{name}: {of[mode]}; " for name, of in COLOURS.items()) for mode in (0, 1))
    return (
        f"\n:root {{ color-scheme: light dark; {light}}}"
        f"\n@media (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}"
        "\n@media print { :root { " + light + "} }"
    )


def _link(section: Section) -> str:
    return f'<a href="#{section.name}">{escape(section.title)}</a>'


def _section(section: Section, pictures: Mapping[str, str], numbers: Numbers) -> Iterator[str]:
    yield f'<section id="{section.name}">'
    yield f"<h2>{escape(section.title)}</h2>"
    yield f"<p>{escape(section.text)}</p>"
    charts = [part for chart in section.charts for part in _figure(chart, pictures[chart.name], numbers)]
    first = [table for table in section.tables if section.tables_first and not table.folded]
    yield from (part for table in first for part in _table(table, numbers))
    yield from ['<div class="charts">', *charts, "</div>"] if charts else []
    yield from (part for table in section.tables if table not in first for part in _table(table, numbers))
    for quote in section.quotes:
        yield f"<h3>{escape(quote.title)}</h3>"
        yield from (f"<blockquote>{'<br />'.join(map(escape, text))}</blockquote>" for text in quote.texts)
        yield from _sources(quote.sources, numbers)
    if section.protocols:
        yield "<details><summary>How it was measured</summary>"
        yield from (f"<p>{escape(protocol)}</p>" for protocol in section.protocols)
        yield "</details>"
    if section.missing:
        yield '<div class="missing"><p>Not measured yet. Run:</p>'
        yield from (_command(command) for command in section.missing)
        yield "</div>"
    yield "</section>"


def _command(command: str) -> str:
    """A command that is broken only between words, except for words too long for a phone's line."""
    words = (escape(word) for word in command.split(" "))
    return f"<code>{' '.join(f'<span>{word}</span>' if len(word) < SHORT else word for word in words)}</code>"


def _figure(chart: Chart, picture: str, numbers: Numbers) -> Iterator[str]:
    yield f'<figure id="figure-{chart.name}">'
    yield picture
    yield f"<figcaption><strong>{escape(chart.title)}</strong>{escape(chart.caption)}"
    yield from _sources(chart.sources, numbers)
    yield "</figcaption></figure>"


def _sources(sources: Sequence[Source], numbers: Numbers) -> Iterator[str]:
    """The numbers of the sources as links to the list of sources."""
    used = sorted(numbers[source] for source in sources)
    links = ", ".join(f'<a href="#source-{number}">{number}</a>' for number in used)
    if links:
        yield f'<div class="sources">Sources: {links}</div>'


def _all_sources(numbers: Numbers) -> Iterator[str]:
    """The list of sources: each artifact once, with the command that made it."""
    if not numbers:
        return
    yield '<section id="sources"><h2>Sources</h2>'
    yield "<details><summary>Artifacts used in this report, and the commands that made them</summary>"
    items = "".join(
        f'<li id="source-{number}"><code>{escape(source.reference)}</code><br />{_command(source.command)}</li>'
        for source, number in numbers.items()
    )
    yield f'<ol class="sources">{items}</ol></details></section>'


def _table(table: Table, numbers: Numbers) -> Iterator[str]:
    title, closing = f"<h3>{escape(table.title)}</h3>", ""
    if table.folded:
        title, closing = f"<details><summary>{escape(table.title)}</summary>", "</details>"
    yield title
    heads = [f'<th scope="col"{_name(n, table)}>{escape(head)}</th>' for n, head in enumerate(table.columns)]
    yield f'<div class="wide"><table><thead><tr>{"".join(heads)}</tr></thead><tbody>'
    for row in table.rows:
        cells = [
            f'<td data-label="{escape(head)}"{_name(n, table)}>{_cell(cell)}</td>'
            for n, (head, cell) in enumerate(zip(table.columns, row, strict=True))
        ]
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    yield from _sources(table.sources, numbers)
    yield closing


def _cell(text: str) -> str:
    """Escaped text in which numbers stay with their units, and intervals are not broken."""
    return KEPT_TOGETHER.sub("\u00a0", escape(text))


def _name(column: int, table: Table) -> str:
    return ' class="name"' if column < table.heads else ""


def _left_out(report: Report) -> Iterator[str]:
    if report.evidence.left_out:
        yield '<section id="left-out"><h2>Left out</h2><ul>'
        for reference, why in report.evidence.left_out.items():
            yield f"<li><code>{escape(reference)}</code>: {escape(why)}</li>"
        yield "</ul></section>"
