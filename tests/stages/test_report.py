"""The report of a work directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sentcompress.artifacts import Artifact, Request, WorkDirectory
from sentcompress.cli.main import _run
from sentcompress.errors import MissingArtifactError
from sentcompress.stages import report


def make(work: WorkDirectory, kind: str, name: str, facts: dict[str, Any], inputs: dict[str, str]) -> Artifact:
    request = Request(kind, name, "test", {"facts": json.dumps(facts)}, inputs)
    with work.build(request) as build:
        with build.write("data.txt") as path:
            path.write_text(json.dumps(facts))
        return build.finish(facts)


def described(student: Artifact, **numbers: float) -> dict[str, Any]:
    return {"label": student.name, "reference": student.reference, "digest": student.digest, **numbers}


@pytest.fixture
def measured(tmp_path: Path) -> WorkDirectory:
    work = WorkDirectory(tmp_path / "work")
    student = make(work, "students", "small", {"method": "hpd"}, {})
    scores = {"model": {"spearman_cosine": 81.0}, "compare": {"spearman_cosine": 82.0}}
    sets = [{"name": "STS-B", "pairs": 9, **scores, "share_kept": 100 * 81 / 82}]
    sts = {"evaluation": "sts", "model": described(student), "compare": {"label": "big"}, "sets": sets}
    make(work, "evaluations", "sts-small", sts, {})
    speed = {"sentences_per_second": 300.0, "latency_p50_milliseconds": 2.0}
    slow = {"sentences_per_second": 100.0, "latency_p50_milliseconds": 5.0}
    sizes = {"parameters": 10, "weight_bytes": 40, "vector_bytes": 512}
    large = {"parameters": 20, "weight_bytes": 80, "vector_bytes": 1536}
    bench = {
        "evaluation": "bench",
        "model": described(student, **speed, **sizes),
        "against": {"label": "big", **slow, **large},
    }
    make(work, "evaluations", "bench-small", bench, {})
    make(work, "exports", "small", {}, {student.reference: student.digest})
    return work


def test_scores_are_shares_and_sizes_are_ratios(measured: WorkDirectory) -> None:
    result = report.run(report.Params(), measured)
    lines = {line["measure"]: line for line in result["lines"]}
    assert lines["STS-B, Spearman x 100"]["ratio"] == pytest.approx(98.7804878)
    assert lines["vector, bytes (float32)"]["ratio"] == 3
    assert lines["encoding, sentences per second"]["ratio"] == 3
    assert lines["latency of one sentence, ms (p50)"]["ratio"] == 2.5
    assert result["compared_with"] == ["big"]
    assert result["paths"]["export"].endswith("exports/small")


def test_what_was_measured_of_an_older_student_of_that_name_is_left_out(measured: WorkDirectory) -> None:
    make(measured, "students", "small", {"method": "ckd"}, {})
    with pytest.raises(MissingArtifactError, match="nothing was measured") as caught:
        report.run(report.Params(), measured)
    assert "eval-sts" in (caught.value.hint or "")


def test_json_is_one_document(measured: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["report", "--json", "--work", str(measured.path)]) == 0
    assert json.loads(capsys.readouterr().out)["student"] == "small"


def test_the_table_names_both_models(measured: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["report", "--work", str(measured.path)]) == 0
    shown = capsys.readouterr().out
    assert "98.8% kept" in shown
    assert "3.00x smaller" in shown


def test_without_a_student_it_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["report", "--work", str(tmp_path)]) == 1
    assert "sentcompress distill" in capsys.readouterr().err
