"""Write the report of a work directory: the quality that students keep, and the size and time that they save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentcompress.commands.report import Params
from sentcompress.errors import InputError, MissingArtifactError, did_you_mean
from sentcompress.evaluation.registry import command_for
from sentcompress.evaluation.score import COMPARE, MODEL
from sentcompress.extras import check_installed
from sentcompress.models.names import is_of_work, meaning_in
from sentcompress.models.sources import MODEL_FOLDER
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, Reporter
from sentcompress.reporting import drawing
from sentcompress.reporting.evidence import Evidence, gather
from sentcompress.reporting.markdown import render_markdown
from sentcompress.reporting.page import render_page
from sentcompress.reporting.parts import Chart, Report, Table
from sentcompress.reporting.sections import compose
from sentcompress.reporting.sections.compression import result_table
from sentcompress.reporting.summary import KEPT, VerdictLine, evaluations_of, lines_of
from sentcompress.store import MODEL_FILES, WorkDirectory, atomic

FOLDER = "report"
PAGE = "report.html"


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> dict[str, Any]:
    """Write the report as HTML, PNG and Markdown; returns its content, and a short table of one model.

    Raises:
        MissingArtifactError: if there is no student and no evaluated model, or no evaluation of the chosen model.
        InputError: if a Markdown file of the user has the name of the page's.
    """
    params.check()
    check_installed("matplotlib")
    if params.output is not None:
        _check_markdown(params.output)
    evidence = gather(work)
    for reference, why in evidence.left_out.items():
        reporter.note(f"{reference} is omitted: {why}")
    chosen = _newest(work, evidence) if params.model is None else _named(work, evidence, params.model)
    lines = lines_of(evidence, chosen)
    name = evidence.names[chosen]
    if not lines:
        raise MissingArtifactError(
            f"there is no evaluation of the current {chosen}",
            f"run: {command_for('fidelity', name, work.path)}",
        )
    if chosen not in evidence.left_out and (made := work.at(chosen)) and (damage := made.damage()):
        reporter.warn(f"{chosen} is damaged: {damage}")
    if any(line.teacher is None for line in lines):
        reporter.note("to compare with the teacher, run the evaluations with --compare teacher")
    report = compose(evidence, datetime.now(UTC), chosen)
    if params.output is None and (work.path / FOLDER).is_symlink():
        raise InputError(f"{work.path / FOLDER} is a symbolic link", "remove it, or choose another file with `output`")
    page = params.output or work.path / FOLDER / PAGE
    pictures = _write(report, page, reporter)
    others = {one.labels[COMPARE] for one in evaluations_of(evidence, chosen) if COMPARE in one.models}
    return {
        "student": name,
        "compared_with": sorted(others),
        "verdict": list(report.verdict),
        "lines": [asdict(line) for line in lines],
        "result": _result(evidence, chosen, lines),
        "paths": {**_paths(work, chosen), "report": str(page)},
        "markdown": render_markdown(report, f"{page.parent.as_posix()}/"),
        **_document(report, pictures),
    }


def _check_markdown(page: Path) -> None:
    """Raise InputError if the Markdown of the page would replace a file of the user, who named only the page."""
    beside = page.with_suffix(".md")
    if beside.exists() and not page.exists():
        raise InputError(
            f"{beside} exists, and the Markdown of the report would replace it",
            ("name another page with `output`", "remove that file"),
        )


def _result(evidence: Evidence, chosen: str, lines: Sequence[VerdictLine]) -> dict[str, Any] | None:
    """The result of the compression that made the model, and its other scores; None for any other model."""
    compression = evidence.compression_of(chosen)
    if compression is None:
        return None
    table = result_table(evidence, compression)
    own = {found.reference for found in compression.results if found}
    others = [line for line in lines if line.better == KEPT and line.source not in own]
    rows = [*table.rows, *([line.metric, line.shown[1], line.shown[0], line.shown[2]] for line in others)]
    return {"columns": list(table.columns), "rows": [list(row) for row in rows]}


def _newest(work: WorkDirectory, evidence: Evidence) -> str:
    students = [student.artifact.reference for student in evidence.students]
    if evidence.compressions and evidence.compressions[-1].models.issuperset(students[-1:]):
        return evidence.compressions[-1].export
    measured = [reference for reference in students if lines_of(evidence, reference)]
    if measured or students:
        return (measured or students)[-1]
    asked = _asked(evidence)
    if not asked:
        raise MissingArtifactError(
            f"no results in {work.path}",
            f"run: sentcompress compress DOCUMENTS --work {shell_word(work.path)}; or name another work directory",
        )
    return asked[-1]


def _named(work: WorkDirectory, evidence: Evidence, name: str) -> str:
    students, asked = work.names("students"), _asked(evidence)
    meaning = meaning_in(work, name)
    if meaning and meaning.kind == "student":
        return _newest(work, evidence)
    if meaning and meaning.name in asked:
        return meaning.name
    name = name.removeprefix("students/")
    found = [
        reference for reference in asked if name in (evidence.names[reference], reference.removeprefix(MODEL_FILES))
    ]
    if not found and (place := Path(name)).is_dir():
        found = [reference for reference in asked if reference == f"{MODEL_FILES}{place.resolve()}"]
    if name not in students and found:
        return found[-1]
    if name not in students and asked:
        hint = did_you_mean(name, {*students, *(evidence.names[reference] for reference in asked)})
        raise MissingArtifactError(f"no student or evaluated model is called {name!r} in {work.path}", hint)
    return work.get("students", name).reference


def _asked(evidence: Evidence) -> list[str]:
    """The evaluated models (role `model`), in the order of their last evaluation."""
    asked = (str(evaluation.models[MODEL]["reference"]) for evaluation in evidence.evaluations)
    return list(dict.fromkeys(reversed(list(asked))))[::-1]


def _write(report: Report, page: Path, reporter: Reporter) -> dict[str, Path]:
    """Draw all figures and write all files; returns chart name -> PNG file."""
    charts = [chart for section in report.sections for chart in section.charts]
    elements: dict[str, str] = {}
    pictures: dict[str, Path] = {}
    with reporter.track("drawing", total=len(charts), unit="figures") as task:
        for chart in charts:
            elements[chart.name], image = _draw(chart)
            pictures[chart.name] = page.with_name(f"{chart.name}.png")
            with atomic.written(pictures[chart.name]) as path:
                path.write_bytes(image)
            task.advance()
    for target, text in ((page, render_page(report, elements)), (page.with_suffix(".md"), render_markdown(report))):
        with atomic.written(target) as path:
            path.write_text(text, encoding="utf-8")
    return pictures


def _draw(chart: Chart) -> tuple[str, bytes]:
    """A figure as an `<svg>` element and as PNG."""
    with drawing.house_style(chart.name):
        figure = chart.draw()
        return drawing.as_svg(figure, chart.name, chart.title), drawing.as_png(figure)


def _document(report: Report, pictures: Mapping[str, Path]) -> dict[str, Any]:
    """The content of the page for `--json`."""
    return {
        "figures": [
            {
                "section": section.name,
                "name": chart.name,
                "title": chart.title,
                "png": str(pictures[chart.name]),
                "sources": [asdict(source) for source in chart.sources],
            }
            for section in report.sections
            for chart in section.charts
        ],
        "tables": [_as_dict(section.name, table) for section in report.sections for table in section.tables],
        "missing": {section.name: list(section.missing) for section in report.sections if section.missing},
        "left_out": dict(report.evidence.left_out),
    }


def _as_dict(section: str, table: Table) -> dict[str, Any]:
    return {"section": section, **asdict(table)}


def _paths(work: WorkDirectory, reference: str) -> dict[str, str]:
    """The paths of the model and of its exports."""
    if not is_of_work(reference):
        folder = Path(reference.removeprefix(MODEL_FILES))
        return {"model": str(folder)} if folder.is_dir() else {}
    made = work.at(reference)
    assert made is not None  # otherwise its evaluations would be left out
    if reference.startswith("exports/"):
        return {"export": str(made.path)}
    paths = {"student": str(made.path / MODEL_FOLDER)}
    # The newest last; damaged ones are left out.
    for export in reversed([*work.newest("exports")]):
        if export.inputs.get(made.reference) == made.digest:
            paths["export"] = str(export.path)
            paths |= {path.stem: str(path) for path in sorted(export.path.rglob("*.onnx"))}
    return paths
