"""report.md with hostile names and texts in everything that it shows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pytest
import report_works
from markdown_it import MarkdownIt

from sentcompress.reporting.evidence import gather
from sentcompress.reporting.markdown import render_markdown
from sentcompress.reporting.page import render_page
from sentcompress.reporting.parts import Report
from sentcompress.reporting.sections import compose
from sentcompress.store import WorkDirectory

EVIL = "<img src=x onerror=alert(1)>|`a`\n\n# [head](javascript:x)\n\x1b[2J*b*"
NAME = EVIL.split("\n")[0]


@pytest.fixture
def report(tmp_path: Path) -> Report:
    work = WorkDirectory(tmp_path / "work")
    student = report_works.student(work, NAME)
    for evaluation in (report_works.sts(work, student), report_works.fidelity(work, student)):
        facts = json.loads(json.dumps(evaluation.facts).replace("STS13", "EVIL").replace("owner/big", "EVIL"))
        facts = json.loads(json.dumps(facts).replace("EVIL", json.dumps(EVIL)[1:-1]))
        inputs = {student.reference: student.digest, f"file:/{EVIL}": "4" * 64}
        name = f"{facts['evaluation']}-evil"
        report_works.make(work, "evaluations", name, str(evaluation.manifest["command"]), facts, inputs)
    return compose(gather(work), datetime(2026, 1, 1, tzinfo=UTC), student.reference)


def test_no_name_is_html_or_markup(report: Report) -> None:
    text = render_markdown(report)
    html = MarkdownIt("commonmark").enable("table").render(text)
    pictures = [f"{chart.name}.png" for section in report.sections for chart in section.charts]
    assert html.count("<img ") == len(pictures)
    assert html.count("onerror=alert(1)&gt;") > 20
    assert "<a " not in html
    assert "\x1b" not in text
    titles = 2 + len(report.sections) + sum(len(s.tables) + len(s.quotes) for s in report.sections)
    assert sum(line.startswith("<h") and line[2].isdecimal() for line in html.splitlines()) == titles


def test_tables_keep_their_cells(report: Report) -> None:
    html = MarkdownIt("commonmark").enable("table").render(render_markdown(report))
    tables = html.split("<table>")[1:]
    assert tables
    for table in tables:
        rows = table.split("</table>")[0].split("<tr>")[1:]
        assert len({row.count("<td") + row.count("<th") - row.count("<thead") for row in rows}) == 1


def test_pictures_are_found_in_a_folder_of_any_name(report: Report) -> None:
    html = MarkdownIt("commonmark").render(render_markdown(report, 'a (b) "c"\n%41/'))
    sources = [part.split('"')[0] for part in html.split('<img src="')[1:]]
    assert sources
    assert all(unquote(source).startswith('a (b) "c"\n%41/') for source in sources)


def test_the_page_shows_them_as_text(report: Report) -> None:
    assert "<img src=x" not in render_page(report, {c.name: "" for s in report.sections for c in s.charts})


def test_what_was_left_out_is_told_as_text(report: Report) -> None:
    evidence = replace(report.evidence, left_out={f"evaluations/{NAME}": EVIL})
    html = MarkdownIt("commonmark").render(render_markdown(replace(report, evidence=evidence)).split("## Left out")[1])
    assert "<img" not in html
    assert "<h1" not in html
