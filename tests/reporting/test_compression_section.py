"""The section of a compression: what came out, all that was tried, and plans that are no finished compression."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import report_works as works

from sentcompress.cli.main import _run
from sentcompress.compression.plan_file import PLANS, PlanFile, read_plan
from sentcompress.published import PUBLISHED
from sentcompress.quantities import told_bytes
from sentcompress.reporting.evidence import gather
from sentcompress.reporting.parts import Section, Table
from sentcompress.reporting.sections import compression, overview
from sentcompress.stages import report
from sentcompress.store import WorkDirectory


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> WorkDirectory:
    return works.compressed(tmp_path_factory.mktemp("compressed") / "work")


def section_of(work: WorkDirectory) -> Section:
    evidence = gather(work)
    (found,) = evidence.compressions
    return compression.section(evidence, found)


def table(section: Section, title: str) -> Table:
    return next(one for one in section.tables if one.title == title)


def points(section: Section, chart: str) -> list[Any]:
    draw: Any = next(one for one in section.charts if one.name == chart).draw
    return list(draw.args[0])


def test_the_result_has_sizes_speed_and_search_fidelity_with_intervals(made: WorkDirectory) -> None:
    rows = {row[0]: row[1:] for row in table(section_of(made), "Result").rows}
    assert rows["size of the model"] == ["9 MB (weights)", "1 MB (int8 graph)", "9.00x smaller"]
    assert rows["encoding, sentences per second"] == ["100.0 (float32)", "300.0 (float32)", "3.00x faster"]
    assert rows["latency of one sentence, median in ms"][2] == "3.00x faster"
    assert rows["size of a stored vector"] == ["24 B (float32)", "2 B (int4, 4 dimensions)", "12.00x smaller"]
    assert rows["search fidelity as deployed, out of 100"] == ["100", "92.0 (91.0 to 93.0)", ""]
    assert rows["mean cosine of vectors in float32 and in int8"] == ["", "0.9968", ""]


def test_a_graph_with_weights_in_four_bits_is_named_as_such(tmp_path: Path) -> None:
    section = section_of(works.untrained(tmp_path / "work", weight_format="int4"))
    rows = {row[0]: row[1:] for row in table(section, "Result").rows}
    assert rows["size of the model"][1] == "1 MB (int8 graph with 4-bit weights)"
    assert "mean cosine of vectors in float32 and in int8 with 4-bit weights" in rows
    ((name, how, size, *_),) = table(section, "Models tried").rows
    assert (name, how) == ("docs (exported)", "int8 graph of owner/big with 4-bit weights")
    assert size == "1 MB with 4-bit weights"
    assert "Sizes are of the int8 graph with 4-bit weights, computed" in section.charts[0].caption


def test_the_overview_has_no_score_that_only_the_teacher_has(tmp_path: Path) -> None:
    """Those with stored vectors have a table of their own."""
    work = WorkDirectory(tmp_path)
    student = works.trained(work, "small", "ready")
    works.search(work, student, "small-trial", 80.0, data="docs dev")
    works.search(work, works.export(work, student, "small"), "small-search", 79.0, stored=2, data="docs test")
    (quality,) = (one for one in overview.section(gather(work)).tables if one.title == "Quality")
    assert list(quality.columns) == ["model", "docs dev, search fidelity"]


def test_the_overview_says_what_its_speed_and_its_vectors_are_of(made: WorkDirectory) -> None:
    """The verdict above it is about the int8 graph and stored vectors of the same model."""
    (found,) = (one for one in overview.section(gather(made)).tables if one.title == "Size and speed")
    assert {"encoding speedup (PyTorch, float32)", "bytes per vector (float32)"} <= set(found.columns)


def test_every_model_and_every_format_tried_is_there_with_its_sources(made: WorkDirectory) -> None:
    section = section_of(made)
    tried = table(section, "Models tried")
    assert [row[:2] for row in tried.rows] == [
        ["docs-1-1", "ready, trained for 1.5 min"],
        ["docs-1-2", "teacher:2, trained for 1.5 min"],
        ["docs-last", "docs-1-best, trained for 1.5 min"],
        ["docs-mixed", "average of docs-last (75%) and docs-1-best (25%)"],
        ["docs (exported)", "int8 graph of docs"],
    ]
    assert [row[3] for row in tried.rows] == ["3.0", "", "3.0", "3.0", "3.0"], "measured of one of each shape"
    assert [row[5] for row in tried.rows] == ["80.0", "70.0", "92.0", "91.0", "92.0"]
    assert [row[4] for row in tried.rows] == ["70.0", "70.0", "70.0", "", ""], "the score of each start, where known"
    sizes = [row[2] for row in tried.rows[2:]]
    assert sizes == ["about 850 kB", "about 849 kB", "1 MB"], "of its weights alone, computed, and measured"
    names = ("docs-1-1-trial", "docs-1-2-trial", "docs-last-trial", "docs-mixed-trial", "docs-search")
    assert [source.reference for source in tried.sources] == [f"evaluations/{name}" for name in names]
    formats = table(section, "Vector formats tried")
    assert [row[:4] for row in formats.rows] == [["int8", "2", "2", "60.0"], ["int4 (chosen)", "4", "2", "91.5"]]
    assert table(section, "First dimensions of the vectors").rows == [["2", "61.0", "60.5"], ["4", "92.0", "91.5"]]
    assert tried.folded
    assert formats.folded


def test_the_charts_have_a_point_for_each_and_one_colour_for_each_shape(made: WorkDirectory) -> None:
    section = section_of(made)
    models = points(section, "tried-docs")
    assert [(point.x, point.y) for point in models if point.marker == "D"] == [(1_000_000, 92.0)]
    assert (9_000_000, 100.0) in [(point.x, point.y) for point in models], "the teacher"
    assert sorted(point.y for point in models) == [70.0, 80.0, 91.0, 92.0, 92.0, 100.0]
    assert {point.legend for point in models} >= {"ready", "teacher:2-e128", "docs (exported)", "big (float32)"}
    shapes = {point.y: point.colour for point in models if point.marker != "D"}
    assert shapes[80.0] == shapes[91.0] == shapes[92.0] != shapes[70.0]
    vectors = points(section, "vectors-docs")
    assert [(point.x, point.y) for point in vectors] == [(2, 60.0), (2, 91.5)]


def test_the_report_begins_with_the_compression(made: WorkDirectory) -> None:
    result = report.run(report.Params(), made)
    assert result["student"] == "exports/docs"
    sentence, *others = result["verdict"]
    (found,) = gather(made).compressions
    assert others == [found.achieved.results, found.achieved.caution], "what the figure means, and what limits it"
    assert all(others)
    assert sentence.startswith(
        "The model is 1 MB instead of 9 MB and 3.0 times as fast; a vector is 2 bytes instead of 24"
    )
    page = (made.path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<h1>docs: big compressed</h1>" in page
    headings = [page.index(f'<section id="{name}">') for name in ("compression-docs", "overview", "training")]
    assert headings == sorted(headings)
    parts = [page.index(part) for part in ("<h3>Result</h3>", 'id="figure-tried-docs"', "Models tried")]
    assert parts == sorted(parts), "the result is before the charts, and the folded tables are after them"
    assert 'id="transfer"' not in page, "nothing was measured there, and nothing is missing"
    assert "--model docs-1-1" not in page.split('<section id="sources">')[0], "candidates need no other evaluation"


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_candidates_of_a_replaced_plan_are_left_out(made: WorkDirectory, tmp_path: Path) -> None:
    work = WorkDirectory(shutil.copytree(made.path, tmp_path / "work"))
    (path,) = (work.path / PLANS).glob("*.toml")
    before = read_plan(path)
    assert before is not None
    replaced = ("students/docs-1-2", "evaluations/docs-1-2-trial")
    now = work.get("students", "docs-1-2").manifest["finished"]
    for since, omitted in (("9999", replaced), (now, ())):
        after = replace(before, since=since, replaced=replaced)
        stages = path.read_text(encoding="utf-8").split("[[stage]]")[1:]
        kept = [stage for stage in stages if "docs-1-2" not in stage]
        path.write_text("[[stage]]".join([f"{after.head}\n", *kept]), encoding="utf-8")
        result = report.run(report.Params(), work)
        assert result["left_out"] == dict.fromkeys(omitted, "it belongs to an earlier plan of docs")
        text = result["markdown"].split("## Sources")[0]
        assert ("docs-1-2" in text) == (not omitted)
        assert "docs-1-1" in text


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_damaged_candidate_is_left_out_of_the_report(made: WorkDirectory, tmp_path: Path) -> None:
    work = WorkDirectory(shutil.copytree(made.path, tmp_path / "work"))
    student = work.get("students", "docs-1-2")
    (student.path / str(next(iter(student.manifest["files"])))).unlink()
    left_out = report.run(report.Params(), work)["left_out"]
    assert "is damaged" in left_out["students/docs-1-2"]


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_terminal_shows_the_result_of_the_compression(
    made: WorkDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["report", "--work", str(made.path)]) == 0
    out = capsys.readouterr().out
    assert "search fidelity as deployed, out of 100" in out
    assert "size of a stored vector" in out
    assert "parameters" not in out


@pytest.mark.usefixtures("figures_not_drawn")
def test_other_scores_of_the_export_are_below_its_result(made: WorkDirectory, tmp_path: Path) -> None:
    work = WorkDirectory(shutil.copytree(made.path, tmp_path / "work"))
    works.sts(work, work.get("exports", "docs"))
    rows = report.run(report.Params(), work)["result"]["rows"]
    assert rows[0][0] == "size of the model"
    assert rows[-1][:3] == ["STS13, Spearman x 100", "80.00", "80.00"]
    assert sum("search fidelity" in row[0] for row in rows) == 1


@pytest.mark.parametrize("keep_index", [False, True])
def test_a_teacher_that_was_not_trained_and_an_index_that_stays(tmp_path: Path, keep_index: bool) -> None:
    section = section_of(works.untrained(tmp_path / "work", keep_index=keep_index))
    rows = {row[0]: row[1:] for row in table(section, "Result").rows}
    assert rows["size of a stored vector"] == ["24 B (float32)", "24 B", ""]
    assert "encoding, sentences per second" not in rows
    assert [one.title for one in section.tables] == ["Result", "Models tried"]
    assert [row[:2] for row in table(section, "Models tried").rows] == [["docs (exported)", "int8 graph of owner/big"]]
    assert [chart.name for chart in section.charts] == ["tried-docs"]
    assert ("passages with the teacher" in section.text) == keep_index


def test_a_published_student_has_the_size_of_its_graph(tmp_path: Path) -> None:
    """The size that the plan says, not an estimate from the parameters."""
    work = WorkDirectory(tmp_path)
    student = works.trained(work, "docs", "general-2m")
    works.search(work, student, "docs-trial", 80.0)
    works.search(work, works.export(work, student, "docs"), "docs-search", 79.0)
    works.plan(
        work,
        "docs",
        works.stage("distill", "docs", student="general-2m"),
        works.stage("eval-search", "docs-trial", model="docs"),
        works.stage("export", "docs", model="docs"),
        works.stage("eval-search", "docs-search", model="exports/docs"),
    )
    (tried, _) = table(section_of(work), "Models tried").rows
    assert tried[2] == "about " + told_bytes(PUBLISHED["general-2m"].graph_bytes)


@pytest.mark.parametrize(
    ("logged", "told"),
    [
        (0, "600 queries made from held-out documents, among"),
        (25, "575 queries made from held-out documents and 25 held-out queries of the log, among"),
    ],
)
def test_the_queries_of_a_log_are_not_said_to_be_made(tmp_path: Path, logged: int, told: str) -> None:
    work = works.untrained(tmp_path, logged=logged)
    assert f"Measured on {told}" in section_of(work).text


def test_plans_that_are_no_finished_compression_have_no_section(tmp_path: Path) -> None:
    work = works.untrained(tmp_path / "work")
    (plan,) = (work.path / "plans").iterdir()
    (work.path / "plans" / "other.toml").write_text('[[stage]]\ncommand = "export"\nname = "docs"\n')
    head = PlanFile({}, 60.0, "", (), ()).head
    (work.path / "plans" / "broken.toml").write_text(f"{head}\n[[stage\n")
    (work.path / "plans" / "unreadable.toml").write_bytes(head.encode() + b"\n\xff")
    (work.path / "plans" / "nameless.toml").write_text(f'{head}\n[[stage]]\ncommand = "export"\n')
    assert [one.name for one in gather(work).compressions] == ["docs"]
    unfinished = plan.read_text().replace('"docs-search"', '"not-there"')
    plan.write_text(unfinished)
    assert gather(work).compressions == []


def test_results_of_an_earlier_model_are_not_shown(tmp_path: Path) -> None:
    work = works.compressed(tmp_path / "work")
    works.trained(work, "docs-1-1", "ready", again=True)
    (found,) = gather(work).compressions
    assert found.last("eval-search") is not None
    assert "docs-1-1-trial" not in [artifact.name for _, artifact in found.made_by("eval-search")]
    shutil.rmtree(work.path / "students" / "docs")
    assert gather(work).compressions == [], "the export is of a model that is gone"
