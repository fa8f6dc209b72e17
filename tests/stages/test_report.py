"""The report of a work directory: the table of a terminal, the page, the pictures, Markdown and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import report_works as works
from listening import Listener

from sentcompress.cli.main import _run
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.stages import report
from sentcompress.store import WorkDirectory


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> WorkDirectory:
    return works.full_work(tmp_path_factory.mktemp("report") / "work")


@pytest.fixture(scope="module")
def page(measured: WorkDirectory) -> str:
    report.run(report.Params(model="small"), measured)
    return (measured.path / "report" / "report.html").read_text(encoding="utf-8")


def tree(page: str) -> ElementTree.Element:
    """The page as XML: every element is closed, every attribute quoted, every character escaped."""
    return ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))


def words(element: ElementTree.Element) -> str:
    return " ".join("".join(element.itertext()).split())


@pytest.mark.usefixtures("figures_not_drawn")
def test_scores_are_shares_and_sizes_are_ratios(measured: WorkDirectory) -> None:
    result = report.run(report.Params(model="small"), measured)
    lines = {line["metric"]: line for line in result["lines"]}
    assert lines["STS-B, Spearman x 100"]["ratio"] == pytest.approx(100 * 81 / 82)
    assert lines["scifact dev, nDCG@10 x 100, exact search"]["student"] == 57
    assert lines["vector, float32"]["ratio"] == pytest.approx(1.5)
    assert lines["vector, float32"]["shown"] == ("16 B", "24 B", "1.50x smaller")
    assert lines["weights"]["ratio"] == pytest.approx(9 / 4)
    assert lines["encoding (sentences/s), float32"]["ratio"] == pytest.approx(3)
    assert lines["latency p50 (ms), float32"]["ratio"] == pytest.approx(3)
    neighbours = lines["mine.txt, nearest neighbours shared x 100, 10 nearest"]
    assert (neighbours["student"], neighbours["teacher"]) == (70, 100)
    kinds = [line["source"].partition("-")[0] for line in result["lines"]]
    assert list(dict.fromkeys(kinds)) == [
        "students/small",
        *(f"evaluations/{kind}" for kind in ("sts", "retrieval", "transfer", "fidelity", "bench")),
    ]
    assert result["verdict"] == [
        "big \u2192 small: 9k to 4k parameters, 9 kB to 4 kB weights, 24 B to 16 B per vector.",
        "Kept: Spearman 99.4% (mean of the sets), nDCG@10 95.0% (scifact dev), nearest neighbours shared 70.0% "
        "(mine.txt).",
        "Encodes 3.00x faster.",
    ]
    assert result["compared_with"] == ["owner/big"]
    assert result["paths"]["export"].endswith("exports/small")


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_size_that_both_models_have_is_shown_once(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.bench(work, works.student(work, "wide", dimension=6))
    verdict = report.run(report.Params(model="wide"), work)["verdict"]
    assert verdict[0].endswith(", 24 B per vector."), verdict


def test_the_page_is_well_formed_and_loads_nothing(page: str) -> None:
    root = tree(page)
    for element in root.iter():
        assert element.tag.rpartition("}")[2] not in ("script", "link", "img", "iframe", "object", "image", "base")
        for name, value in element.attrib.items():
            if name in ("src", "href", "data") or name.endswith("}href"):
                assert value.startswith("#"), (name, value)
    without_namespaces = page.replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in without_namespaces
    assert "https:" not in without_namespaces
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\((.*?)\)", page))


def test_no_id_occurs_twice_and_every_reference_has_its_target(page: str) -> None:
    root = tree(page)
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    assert len(ids) == len(set(ids))
    targets = {value[1:] for element in root.iter() if (value := element.attrib.get("href", "")).startswith("#")}
    assert targets
    assert targets | set(re.findall(r"url\(#(.*?)\)", page)) <= set(ids)


def test_every_figure_and_table_names_its_sources_and_each_stands_once(page: str, measured: WorkDirectory) -> None:
    root = tree(page)
    figures = root.findall(".//figure")
    names = {figure.attrib["id"].removeprefix("figure-") for figure in figures}
    assert names == {
        *("kept", "frontier-size", "frontier-vector", "alignment-uniformity", "retrieval-scifact-dev"),
        *("similarities", "covariance-fidelity-small", "loss", "dev", "pca-variance"),
    }
    listed = root.findall(".//section[@id='sources']//li")
    references, commands = ([words(item[place]) for item in listed] for place in (0, 2))
    known = {f"{kind}/{n}" for kind in ("evaluations", "students", "projections") for n in measured.names(kind)}
    assert sorted(references) == sorted(known)
    assert all(re.match(r"sentcompress [a-z-]+", command) for command in commands)
    assert words(root.find("body")).count("eval-retrieval --name retrieval-small ") == 1  # type: ignore[arg-type]
    ids = {item.attrib["id"] for item in listed}
    for figure in figures:
        links = [link.attrib["href"] for link in figure.findall(".//div[@class='sources']/a")]
        assert links, figure.attrib["id"]
        assert {link.removeprefix("#") for link in links} <= ids
        assert (measured.path / "report" / f"{figure.attrib['id'].removeprefix('figure-')}.png").is_file()
    made = dict(zip(references, commands, strict=True))
    work = f"--work {measured.path}"
    assert made["evaluations/retrieval-small"] == f"sentcompress eval-retrieval --name retrieval-small {work}"
    assert made["projections/pca-4"] == f"sentcompress fit-pca --name pca-4 {work}"


def test_the_first_screen_says_what_became_of_which_model(page: str) -> None:
    root = tree(page)
    assert words(root.find("head/title")) == "small: sentcompress report"  # type: ignore[arg-type]
    header = root.find("body/header")
    assert header is not None
    assert words(header.find("h1")) == "small and 1 more compared with big"  # type: ignore[arg-type]
    verdict = [words(line) for line in header.findall("p[@class='verdict']")]
    assert verdict[0].startswith("big \u2192 small: 9k to 4k parameters")
    assert "nDCG@10 95.0% (scifact dev)" in verdict[1]
    heads = [words(head) for head in root.iter("h2")]
    assert len(heads) == len(set(heads))


@pytest.mark.usefixtures("figures_not_drawn")
def test_with_fidelity_alone_no_cell_is_empty_and_two_models_are_no_frontier(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.fidelity(work, works.student(work, "small"))
    result = report.run(report.Params(), work)
    tables = {table["title"]: table for table in result["tables"]}
    assert [row[1] for row in tables["Quality"]["rows"]] == ["100.00", "70.00 (70.0%)"]
    assert "weights on disk" in tables["Size and speed"]["columns"]
    assert not [figure["name"] for figure in result["figures"] if figure["name"].startswith("frontier")]


def test_a_verdict_by_rule_of_thumb_quotes_what_retrieval_measured(page: str) -> None:
    quotes = [words(quote) for quote in tree(page).iter("blockquote")]
    assert any("small keeps 70%.Measured on scifact dev: 95.0% of the nDCG@10 is kept" in quote for quote in quotes)


def test_pictures_follow_light_and_dark(page: str) -> None:
    from sentcompress.reporting.drawing import COLOURS

    svg = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert not [light for light, _ in COLOURS.values() if light in svg]
    assert {"var(--ink)", "var(--teacher)", "var(--series1)", "var(--series2)"} <= set(re.findall(r"var\(--\w+\)", svg))
    assert "prefers-color-scheme: dark" in page


def test_numbers_have_their_intervals_and_users_text_is_text(page: str) -> None:
    root = tree(page)
    cells = {words(cell) for cell in root.iter("td")}
    assert {"79.00 to 83.00", "-2.00 to +0.50", "98.8%", "54.00 to 60.00", "60.0 to 80.0"} <= cells
    assert any(works.HOSTILE in words(quote) for quote in root.iter("blockquote"))
    assert root.find(".//b") is None


def test_what_was_not_measured_is_there_as_a_command(page: str, measured: WorkDirectory) -> None:
    sections = {section.attrib["id"]: section for section in tree(page).findall(".//section")}
    commands = [words(code) for code in sections["transfer"].findall("div[@class='missing']/code")]
    assert commands == [
        f"sentcompress eval-transfer --tasks FOLDER --model tiny --compare teacher --work {measured.path}"
    ]
    assert not sections["sts"].findall("div[@class='missing']")


def test_a_student_with_nothing_but_sts_has_a_page(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.sts(work, works.student(work, "small"))
    result = report.run(report.Params(output=tmp_path / "out" / "mine.html"), work)
    names = {figure["name"] for figure in result["figures"]}
    assert names == {"kept", "alignment-uniformity", "loss", "dev"}
    root = tree((tmp_path / "out" / "mine.html").read_text(encoding="utf-8"))
    assert words(root.find("body")).count("Not measured yet") == 6  # type: ignore[arg-type]
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".html", ".md", *[".png"] * 4]


@pytest.mark.usefixtures("figures_not_drawn")
def test_what_was_measured_of_an_older_student_of_that_name_is_left_out(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.sts(work, works.student(work, "small"))
    works.student(work, "small", "ckd", 3)
    with pytest.raises(MissingArtifactError, match="there is no evaluation of") as caught:
        report.run(report.Params(), work)
    assert "eval-fidelity --text FILE" in (caught.value.hint or "")
    works.sts(work, works.student(work, "other"))
    assert report.run(report.Params(), work)["left_out"] == {
        "evaluations/sts-small": "it measured an earlier students/small"
    }


@pytest.mark.usefixtures("figures_not_drawn")
def test_by_default_the_table_is_of_the_newest_student_that_was_measured(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.sts(work, works.student(work, "small"))
    works.student(work, "newer")
    assert report.run(report.Params(), work)["student"] == "small"
    with pytest.raises(MissingArtifactError, match="there is no evaluation of the current students/newer"):
        report.run(report.Params(model="newer"), work)


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_damaged_log_is_told(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    works.sts(work, small)
    other = works.student(work, "other")
    works.sts(work, other)
    log = small.path / "log.jsonl"
    log.write_text("[" + log.read_text()[1:])  # of the same length
    found = report.run(report.Params(), work)
    assert found["student"] == "other"
    assert "log.jsonl, line 1, is not valid JSON" in found["left_out"]["students/small"]


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_damaged_export_is_no_obstacle(tmp_path: Path) -> None:
    work, heard = works.full_work(tmp_path / "work"), Listener()
    export = work.get("exports", "small")
    facts = work.get("evaluations", "sts-small").facts
    model = {**facts["model"], "label": "small (export)", "reference": export.reference, "digest": export.digest}
    works.make(work, "evaluations", "sts-of-export", "eval-sts", works.with_model(facts, model))
    (export.path / "data.txt").unlink()
    assert "export" not in report.run(report.Params(model="small"), work, heard)["paths"]
    assert heard.warnings == []
    assert report.run(report.Params(model="small (export)"), work, heard)["paths"]["export"] == str(export.path)
    assert heard.warnings == ["exports/small is damaged: data.txt is missing"]


@pytest.mark.usefixtures("figures_not_drawn")
def test_an_evaluation_whose_manifest_is_odd_is_left_out(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    works.sts(work, small)
    for name, facts in (("a", {}), ("b", {"evaluation": "sts", "model": []}), ("c", {"evaluation": []})):
        works.make(work, "evaluations", name, "eval-sts", facts)
    found = report.run(report.Params(), work)
    assert found["student"] == "small"
    assert {"evaluations/a", "evaluations/b", "evaluations/c"} <= found["left_out"].keys()


def test_the_page_has_to_be_a_page(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names the page"):
        report.run(report.Params(output=tmp_path), WorkDirectory(tmp_path))


def test_json_is_one_document(measured: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["report", "--json", "--work", str(measured.path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["student"] == "tiny"
    assert "markdown" not in document
    tables = {(table["section"], table["title"]): table for table in document["tables"]}
    for title in ("Quality", "Size and speed"):
        overview = tables["overview", title]
        assert [row[0] for row in overview["rows"]] == ["big", "small", "tiny"]
        assert all(len(row) == len(overview["columns"]) for row in overview["rows"])
    assert Path(document["figures"][0]["png"]).read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("figures_not_drawn")
def test_markdown_is_printed_with_pictures_where_they_are(
    measured: WorkDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["report", "--markdown", "--work", str(measured.path)]) == 0
    text = capsys.readouterr().out
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == 10
    assert all(Path(picture).is_file() for picture in pictures)
    assert r"A \<b>bold\</b> \& " in text
    rows = [line for line in text.splitlines() if line.startswith("| STS-B")]
    assert [row.count("|") for row in rows] == [9] * 3


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_table_names_both_models(measured: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["report", "--model", "small", "--work", str(measured.path)]) == 0
    shown = capsys.readouterr().out
    assert "98.8% kept" in shown
    assert "1.50x smaller" in shown
    assert f"report   {measured.path / 'report' / 'report.html'}" in shown


def test_without_a_student_it_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["report", "--work", str(tmp_path)]) == 1
    assert "sentcompress compress DOCUMENTS" in capsys.readouterr().err


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_model_from_outside_has_a_report_without_any_student(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, folder = WorkDirectory(tmp_path / "work"), tmp_path / "models" / "short"
    folder.mkdir(parents=True)
    works.guest(work, folder)
    monkeypatch.chdir(folder.parent)
    for model in (None, "short", "./short", str(folder)):
        result = report.run(report.Params(model=model), work)
        assert result["student"] == "short"
        assert result["paths"]["model"] == str(folder)
        assert {line["source"] for line in result["lines"]} == {f"model:{folder}", "evaluations/sts-short-6"}
    page = (work.path / "report" / "report.html").read_text(encoding="utf-8")
    assert "1 model, 1 evaluation in" in words(tree(page))
    assert _run(["report", "--model", "shrot", "--work", str(work.path)]) == 1
    assert "did you mean short?" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_markdown_file_of_the_user_is_not_replaced(measured: WorkDirectory, tmp_path: Path) -> None:
    own = tmp_path / "README.md"
    own.write_text("mine\n", encoding="utf-8")
    asked = report.Params(output=tmp_path / "README.html")
    with pytest.raises(InputError, match=r"README\.md exists, and the Markdown of the report would replace it"):
        report.run(asked, measured)
    assert own.read_text(encoding="utf-8") == "mine\n"
    own.unlink()
    report.run(asked, measured)
    before = own.read_text(encoding="utf-8")
    report.run(asked, measured)
    assert own.read_text(encoding="utf-8").splitlines()[0] == before.splitlines()[0], "that of a report is"


@pytest.mark.usefixtures("figures_not_drawn")
def test_an_export_has_a_report_of_its_own(tmp_path: Path) -> None:
    work = works.full_work(tmp_path / "work")
    export = work.get("exports", "small")
    facts = work.get("evaluations", "sts-small").facts
    model = {**facts["model"], "label": "small (export)", "reference": export.reference, "digest": export.digest}
    works.make(work, "evaluations", "sts-of-export", "eval-sts", works.with_model(facts, model))
    result = report.run(report.Params(model="small (export)"), work)
    assert result["paths"]["export"] == str(export.path)
    assert report.run(report.Params(model="small"), work)["student"] == "small"
