"""What a report takes from evaluations: which count, what models are called, what they have in common."""

from __future__ import annotations

from pathlib import Path

import pytest
import report_works as works

from sentcompress.evaluation.metrics import (
    ACCURACY,
    NDCG,
    NEIGHBOURS,
    PARAMETERS,
    SEARCH_FIDELITY,
    SPEARMAN,
    VECTOR_BYTES,
    WEIGHT_BYTES,
)
from sentcompress.reporting.evidence import gather
from sentcompress.reporting.score_section import missing, score_tables
from sentcompress.reporting.sections import overview, retrieval, sts
from sentcompress.reporting.sections.training import loss_of
from sentcompress.reporting.summary import common, lines_of, mean_over, summaries
from sentcompress.store import WorkDirectory

WEIGHTS = "model/model.safetensors"


def test_every_model_has_its_figures(tmp_path: Path) -> None:
    evidence = gather(works.full_work(tmp_path / "work"))
    assert list(evidence.names.values()) == ["big", "small", "tiny"]
    found = {evidence.names[reference]: summary for reference, summary in summaries(evidence).items()}
    searched = "retrieval", "scifact dev", NDCG
    assert (found["small"].scores[searched].value, found["small"].scores[searched].kept) == (57.0, 95.0)
    assert (found["big"].scores[searched].value, found["big"].scores[searched].kept) == (60.0, None)
    assert found["small"].values("transfer", ACCURACY) == {"MR": 75.0, "TREC": 85.0}
    assert found["small"].times_faster == pytest.approx(3)
    assert found["big"].speed is not None
    assert found["big"].speed.value == 100
    assert found["tiny"].speed is None
    assert found["tiny"].values("sts", SPEARMAN) == {"STS-B": 75.0, "STS13": 74.0}
    assert found["big"].values("fidelity", NEIGHBOURS) == {"mine.txt": 100.0}


def test_tables_of_another_runtime_say_so(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    works.retrieval(work, small)
    works.retrieval(work, small, "onnx-int8")
    titles = [table.title for table in retrieval.section(gather(work)).tables]
    assert sorted(titles) == [
        "Indexes: small on scifact dev (50 documents, 9 queries with an answer)",
        "Indexes: small on scifact dev (50 documents, 9 queries with an answer), onnx-int8",
        "scifact dev",
        "scifact dev, onnx-int8",
    ]


def test_what_another_model_encoded_or_a_quantizer_stored_is_apart_and_no_figure_of_the_model(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    works.search(work, small, "plain", 80.0)
    works.search(work, small, "kept", 92.0, keep_index=True)
    works.search(work, small, "coded", 70.0, stored=24)
    evidence = gather(work)
    assert summaries(evidence)[small.reference].scores["search", "docs", SEARCH_FIDELITY].value == 80.0
    assert [one.use for one in evidence.evaluations] == ["", "documents by big", "stored as int4"]
    titles = {table.title for table in score_tables(evidence, evidence.evaluations)}
    ways = ("", ", documents by big", ", stored as int4")
    assert {f"search fidelity x 100{way}" for way in ways} <= titles
    assert any("92.0% (docs, documents by big)" in line for line in overview.verdict(evidence, small.reference))


def test_scores_of_another_split_or_runtime_say_so(tmp_path: Path) -> None:
    """Their names are those of the test split: STS-B has a dev split too."""
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    facts = works.sts(work, small).facts
    protocol = {**facts["protocol"], "split": "dev", "runtime": "onnx-int8"}
    works.make(work, "evaluations", "sts-small-dev", "eval-sts", {**facts, "protocol": protocol})
    evidence = gather(work)
    lines = [line.metric for line in lines_of(evidence, small.reference) if line.metric.startswith("STS-B")]
    assert lines == ["STS-B, Spearman x 100", "STS-B, Spearman x 100, dev split, onnx-int8"]
    kept = overview.verdict(evidence, small.reference)[1]
    assert "99.4% (mean of the sets), " in kept
    assert "99.4% (mean of the sets, dev split, onnx-int8)" in kept
    (chart,) = sts.section(evidence).charts
    assert [source.reference for source in chart.sources] == ["evaluations/sts-small"]


def test_figures_of_one_column_have_one_protocol(tmp_path: Path) -> None:
    """The one that most models were measured by; a figure by another one does not stand beside them."""
    work = WorkDirectory(tmp_path / "work")
    first, second = works.student(work, "first"), works.student(work, "second")
    for one in (first, second):
        works.search(work, one, f"search-{one.name}", 80.0)
    works.search(work, first, "fewer", 95.0, queries=5)
    found = summaries(gather(work))
    assert [found[one.reference].scores["search", "docs", SEARCH_FIDELITY].value for one in (first, second)] == [80, 80]


def test_sizes_are_known_without_a_bench(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    works.sts(work, small)
    sizes = summaries(gather(work))[small.reference].sizes
    assert sizes == {PARAMETERS: 4000, VECTOR_BYTES: 16, WEIGHT_BYTES: small.manifest["files"][WEIGHTS]["bytes"]}


def test_an_evaluation_beside_a_student_that_is_gone_does_not_count(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    gone = {"label": "gone", "reference": "students/gone", "digest": "9" * 64}
    facts = works.nothing_measured(works.described(small), gone)
    works.make(work, "evaluations", "bench-small", "bench", facts)
    evidence = gather(work)
    assert evidence.evaluations == []
    assert evidence.left_out == {"evaluations/bench-small": "it measured students/gone, which is gone"}


def test_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    small = works.student(work, "small")
    other = {"label": "elsewhere/small", "reference": "model:elsewhere/small", "digest": "8" * 64}
    facts = works.nothing_measured(works.described(small), other)
    works.make(work, "evaluations", "bench-small", "bench", facts)
    assert gather(work).names == {"model:elsewhere/small": "elsewhere/small", "students/small": "students/small"}


def test_a_model_from_outside_beside_another_is_one_that_the_report_is_about(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.sts(work, works.student(work, "small"))
    works.guest(work, tmp_path / "short", 79.0)
    evidence = gather(work)
    assert list(evidence.names.values()) == ["big", "small", "short"]
    guest = f"model:{tmp_path / 'short'}"
    assert evidence.guests == {guest}
    assert len({evidence.colour(reference) for reference in evidence.names}) == 3
    assert evidence.colour("model:owner/big") == "teacher"
    (quality,) = (table for table in overview.section(evidence).tables if table.title == "Quality")
    assert [row[:2] for row in quality.rows] == [
        ["big", "81.00"],
        ["small", "80.50 (99.4%)"],
        ["short", "78.50 (96.9%)"],
    ]
    (rows,) = (table.rows for table in sts.section(evidence).tables)
    assert {row[1] for row in rows} == {"big", "small", "short"}
    assert f"sentcompress bench --model {tmp_path / 'short'} --compare teacher --work {work.path}" in missing(
        evidence, "bench"
    )


def test_what_others_are_held_against_is_not_a_guest(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.guest(work, tmp_path / "short")
    facts = works.nothing_measured(works.TEACHER, {**works.TEACHER, "reference": "model:larger"})
    works.make(work, "evaluations", "bench-big", "bench", facts)
    assert gather(work).guests == {f"model:{tmp_path / 'short'}"}


def test_a_folder_that_holds_another_model_by_now_counts_as_it_was_measured_last(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    works.guest(work, tmp_path / "short", 60.0, "5" * 64)
    works.guest(work, tmp_path / "short", 79.0, "6" * 64)
    evidence = gather(work)
    assert [one.artifact.name for one in evidence.evaluations] == ["sts-short-6"]
    assert evidence.left_out == {"evaluations/sts-short-5": f"it measured an earlier {tmp_path / 'short'}"}


def test_scores_on_different_data_stand_in_different_tables(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    first, second, third = (works.student(work, name) for name in ("a", "b", "c"))
    works.sts(work, first)
    works.sts(work, second)
    facts = works.sts(work, third).facts
    works.make(work, "evaluations", "sts-c", "eval-sts", facts, {"file:/data/sts/test.tsv": "9" * 64})
    rows = [{row[1] for row in table.rows} for table in sts.section(gather(work)).tables]
    assert rows == [{"big", "a", "b"}, {"big", "c"}]


def test_means_are_over_what_all_models_have() -> None:
    scores = [{"a": 1.004, "b": 2.0, "c": 9.0}, {}, {"c": 3.0, "a": 4.0}]
    assert common(scores) == ["a", "c"]
    assert mean_over(scores[0], ["a", "c"]) == (1.00 + 9.0) / 2
    assert mean_over(scores[1], ["a", "c"]) is None
    assert mean_over(scores[0], []) is None
    assert common([{}, {}]) == []


def test_the_loss_is_the_sum_of_its_terms() -> None:
    line = {"step": 3, "epoch": 0.1, "mse": 2.0, "pkd": 0.5, "sentences_per_second": 9.0, "lr": 1e-3, "queue": 7}
    assert loss_of(line) == 2.5
    assert loss_of({"step": 0, "epoch": 0.0, "dev": 50.0}) is None
