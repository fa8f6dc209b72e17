"""The document of an evaluation: JSON for every reader, checked when it is read, and shown without knowing its kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import report_works as works

from sentcompress.cli.call import Call
from sentcompress.cli.evaluations import show
from sentcompress.cli.render import document_of
from sentcompress.errors import DamagedError
from sentcompress.evaluation import registry
from sentcompress.evaluation.metrics import F1, INDEX_BYTES, NDCG, SPEARMAN
from sentcompress.evaluation.registry import EVALUATIONS, EvaluationKind
from sentcompress.evaluation.results import (
    FILE,
    headline_of,
    read_evaluation,
    with_compared,
    write_result,
)
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MEAN, Recorder
from sentcompress.stages import report, status
from sentcompress.store import Artifact, Request, WorkDirectory


def test_figures_that_are_not_defined_become_null(tmp_path: Path) -> None:
    with WorkDirectory(tmp_path).build(Request("evaluations", "e", "eval-sts", {})) as build:
        artifact = write_result(build, {"score": 1.5, "interval": [np.float64("nan"), float("inf")]})
    wanted = {"score": 1.5, "interval": [None, None]}
    assert json.loads((artifact.path / FILE).read_text()) == wanted
    assert artifact.facts == wanted
    assert "NaN" not in (artifact.path / "manifest.json").read_text()


def test_the_headlines_are_the_main_metric_and_what_its_kind_adds(work: WorkDirectory) -> None:
    student = works.student(work, "small")
    sts = read_evaluation(works.sts(work, student))
    assert [(s.data, s.metric) for s in sts.headlines() if s.role == "model"] == [
        ("STS-B", SPEARMAN),
        ("STS13", SPEARMAN),
        (MEAN, SPEARMAN),
    ]
    retrieval = read_evaluation(works.retrieval(work, student))
    found = [(score.metric, score.part) for score in retrieval.headlines() if score.role == "model"]
    assert found[:2] == [(NDCG, EXACT), (INDEX_BYTES, "flat")]
    assert (sts.labels, sts.statement) == ({"model": "small", "compare": "owner/big"}, "the papers' protocol")
    assert sts.data == {"1" * 64}


def test_one_value_says_most_of_an_evaluation(work: WorkDirectory) -> None:
    student = works.student(work, "small")
    assert headline_of(works.sts(work, student)) == {"Spearman x 100 (mean of the sets)": 80.5}
    assert headline_of(works.retrieval(work, student)) == {"nDCG@10 x 100 (scifact dev, exact search)": 57.0}
    as_graph = works.retrieval(work, student, "onnx-int8")
    assert headline_of(as_graph) == {"nDCG@10 x 100 (scifact dev, exact search, onnx-int8)": 57.0}
    assert headline_of(works.make(work, "evaluations", "odd", "eval-sts", {"evaluation": "sts"})) == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": []}, "does not name the evaluation"),
        ({"model": {"label": "x", "reference": 3}}, "does not name the evaluation"),
        ({"compare": None}, "does not name the evaluation"),
        ({"evaluation": ["sts"]}, "does not name the evaluation"),
        ({"protocol": "ours"}, "does not name the evaluation"),
        ({"protocol": {"statement": None}}, "does not name the evaluation"),
        ({"scores": None}, "no list of scores"),
        ({"scores": [{}]}, "is not text"),
        (
            {"scores": [{"model": "s", "role": "protocol", "data": "", "metric": SPEARMAN, "value": 1}]},
            "a model it does not name",
        ),
    ],
)
def test_a_damaged_document_is_told(work: WorkDirectory, changes: dict[str, Any], said: str) -> None:
    facts = works.sts(work, works.student(work, "small")).facts
    artifact = works.make(work, "evaluations", "e", "eval-sts", {**facts, **changes})
    with pytest.raises(DamagedError, match=said):
        read_evaluation(artifact)


def alone(work: WorkDirectory, name: str, model: dict[str, str], value: float, data: str = "STS-B") -> Artifact:
    recorder = Recorder({"model": model["reference"]})
    recorder.add(data, SPEARMAN, {"model": value}, count=9)
    return works.make(work, "evaluations", name, "eval-sts", works.document("sts", {"model": model}, recorder))


def test_an_evaluation_of_another_model_can_stand_beside_one_without(work: WorkDirectory) -> None:
    student = {"reference": "students/s", "label": "s"}
    ours = read_evaluation(alone(work, "a", student, 72.0))
    theirs = read_evaluation(alone(work, "t", works.TEACHER, 90.0))
    both = with_compared(ours, theirs)
    assert both.table() == (
        ["set", "count", "s", "big", "difference", "kept"],
        [["STS-B", "9", "72.00", "90.00", "-18.00", "80.0%"]],
    )
    elsewhere = read_evaluation(alone(work, "u", works.TEACHER, 90.0, "STS13"))
    assert with_compared(ours, elsewhere).table()[1] == [["STS-B", "9", "72.00"]]


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_new_evaluation_needs_no_more_than_its_scores_and_its_registration(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    registered = EvaluationKind("Magic", "eval-magic --model {model}", "What magic there is.", "spell", task="other")
    monkeypatch.setitem(EVALUATIONS, "magic", registered)  # type: ignore[arg-type]
    student = works.student(work, "small")
    models = {"model": works.described(student), "compare": works.TEACHER}
    recorder = Recorder({role: model["reference"] for role, model in models.items()})
    for spell in ("fire", "ice"):
        recorder.add(spell, F1, {"model": 60.0, "compare": 80.0}, count=7)
    artifact = works.make(work, "evaluations", "m", "eval-magic", works.document("magic", models, recorder))

    show(artifact, Call(None, work.path))
    shown = capsys.readouterr().out
    assert all(part in shown for part in ("Magic", "spell", "fire", "60.00", "80.00", "-20.00", "75.0%"))
    assert len(document_of(artifact)["facts"]["scores"]) == 4
    (row,) = [row for row in status.run(status.Params(), work) if row["kind"] == "evaluations"]
    assert row["facts"]["F1 x 100 (fire)"] == 60.0
    result = report.run(report.Params(), work)
    lines = {line["metric"]: line["shown"] for line in result["lines"]}
    assert lines["fire, F1 x 100"] == ("60.00", "80.00", "75.0% kept")
    assert "Kept: F1 75.0% (fire), F1 75.0% (ice)." in result["verdict"]
    tables = {(table["section"], table["title"]): table for table in result["tables"]}
    assert tables["magic", "F1 x 100"]["rows"][1] == ["fire", "small", "7", "60.00", "-20.00", "75.0%"]
    assert tables["overview", "Quality"]["columns"] == ["model", "fire, F1", "ice, F1"]
    assert "What magic there is." in result["markdown"]


@pytest.mark.usefixtures("figures_not_drawn")
def test_an_evaluation_that_nobody_registered_is_shown_too(work: WorkDirectory) -> None:
    student = works.student(work, "small")
    recorder = Recorder({"model": student.reference})
    recorder.add("fire", F1, {"model": 60.0})
    facts = works.document("magic", {"model": works.described(student)}, recorder)
    works.make(work, "evaluations", "m", "eval-magic", facts)
    result = report.run(report.Params(), work)
    assert [line["metric"] for line in result["lines"] if line["source"] == "evaluations/m"] == ["fire, F1 x 100"]


def test_every_kind_names_a_command_for_what_is_missing() -> None:
    assert all("{model}" in kind.command for kind in registry.EVALUATIONS.values())
