"""The card's sources: what a model was made of, what was measured of it, by which command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sentcompress.exporting.lineage import ancestors, command_line, measurements, tables
from sentcompress.store import Artifact, Request, WorkDirectory

STUDENT = {"reference": "students/s", "digest": "5" * 64, "label": "s"}
TEACHER = {"reference": "model:owner/t", "digest": "7" * 64, "label": "owner/t"}


@pytest.fixture
def work(tmp_path: Path) -> WorkDirectory:
    return WorkDirectory(tmp_path / "work")


def make(
    work: WorkDirectory,
    reference: str,
    command: str,
    inputs: dict[str, str] | None = None,
    facts: dict[str, Any] | None = None,
    **parameters: Any,
) -> Artifact:
    kind, name = reference.split("/")
    with work.build(Request(kind, name, command, parameters, inputs or {}), force=True) as build:
        (build.path / "data").write_text(f"{reference} {parameters}")
        return build.finish(facts or {})


def scores(model: dict[str, str], value: float, **more: Any) -> dict[str, Any]:
    entry = {"name": "STS13", "pairs": 1500, "model": {"spearman_cosine": value}, "subsets": []}
    protocol = {"split": "test", "aggregate": "all"}
    return {"evaluation": "sts", "protocol": protocol, "model": model, "sets": [entry | more]}


def test_ancestors_are_followed_by_digest(work: WorkDirectory) -> None:
    sentences = make(work, "sentences/main", "augment")
    vectors = make(work, "teacher-vectors/main", "teacher-embed", {sentences.reference: sentences.digest})
    made_of = {sentences.reference: sentences.digest, vectors.reference: vectors.digest, "model:x": "1" * 64}
    student = make(work, "students/s", "distill", made_of)
    found = [artifact.reference for artifact in ancestors(work, student.reference, student.digest)]
    assert found == ["students/s", "sentences/main", "teacher-vectors/main"]
    make(work, "sentences/main", "augment", limit=5)  # other sentences of the same name
    found = [artifact.reference for artifact in ancestors(work, student.reference, student.digest)]
    assert found == ["students/s", "teacher-vectors/main"]
    assert ancestors(work, "model:owner/t", "7" * 64) == []


def test_only_scores_of_this_very_model_count(work: WorkDirectory) -> None:
    make(work, "evaluations/a", "eval-sts", facts=scores(STUDENT, 80.0))
    make(work, "evaluations/older", "eval-sts", facts=scores(STUDENT | {"digest": "6" * 64}, 70.0))
    make(work, "evaluations/other", "eval-sts", facts=scores(TEACHER, 90.0))
    assert [a.name for a in measurements(work, "students/s", "5" * 64)] == ["a"]


@pytest.mark.parametrize(("same_files", "kept"), [(True, "80.00%"), (False, None)])
def test_the_teachers_own_score_stands_beside(same_files: bool, kept: str | None, work: WorkDirectory) -> None:
    files = {"file:/data/sts13/FNWN.tsv": "1" * 64}
    ours = make(work, "evaluations/a", "eval-sts", files, scores(STUDENT, 72.0))
    theirs = files if same_files else {"file:/data/sts13/FNWN.tsv": "2" * 64}
    make(work, "evaluations/t", "eval-sts", theirs, scores(TEACHER, 90.0))
    (table,) = tables(work, [ours], {TEACHER["digest"]})
    expected = ["STS13", "1,500", "72.00", *(["90.00", kept] if kept else [])]
    assert list(table.rows[0]) == expected
    assert len(table.columns) == len(expected)


def test_a_comparison_is_shown_as_it_was_made(work: WorkDirectory) -> None:
    facts = scores(STUDENT, 72.0, compare={"spearman_cosine": 80.0}) | {"compare": TEACHER}
    (table,) = tables(work, [make(work, "evaluations/a", "eval-sts", {}, facts)], set())
    assert list(table.columns) == ["set", "pairs", "s", "owner/t", "kept"]
    assert list(table.rows[0]) == ["STS13", "1,500", "72.00", "80.00", "90.00%"]
    assert table.scores == [("STS13", "spearman_cosine", 72.0)]


def test_retrieval_and_speed_have_tables_and_unknown_kinds_have_none(work: WorkDirectory) -> None:
    entry = {"index": "ivf", "model": {"mrr_at_10": 60.0, "index_bytes": 1000}}
    entry["compare"] = {"mrr_at_10": 80.0, "index_bytes": 6000}
    retrieval = {"evaluation": "retrieval", "documents": 10, "judged_queries": 4, "model": STUDENT, "compare": TEACHER}
    speed = {"evaluation": "bench", "model": STUDENT | {"sentences_per_second": 5000.0, "weight_bytes": 70_000_000}}
    found = [
        make(work, "evaluations/r", "eval-retrieval", {}, retrieval | {"indexes": [entry]}),
        make(work, "evaluations/b", "bench", {}, speed),
        make(work, "evaluations/u", "eval-magic", {}, {"evaluation": "magic", "model": STUDENT}),
    ]
    first, second = tables(work, found, set())
    assert [list(row) for row in first.rows] == [
        ["MRR@10 x 100, ivf", "60.00", "80.00", "75.00%"],
        ["index bytes, ivf", "1,000", "6,000", ""],
    ]
    assert [list(row) for row in second.rows] == [["sentences per second", "5,000"], ["bytes of weights", "70,000,000"]]


def test_commands_name_files_and_models_without_folders(work: WorkDirectory) -> None:
    files = {"file:/home/someone/sts/test.tsv": "1" * 64, "students/s": "5" * 64}
    sts = make(work, "evaluations/a", "eval-sts", files, model="students/s", compare="model:owner/t", dtype="float32")
    assert command_line(sts) == "sentcompress eval-sts --sts test.tsv --compare owner/t --model s"
    inputs = {"hub:mteb/sts13-sts:test": "1" * 40, "hub:mteb/sts17-crosslingual-sts:en-en:test": "2" * 40}
    hub = make(work, "evaluations/h", "eval-sts", inputs, model="students/s")
    assert command_line(hub) == (
        "sentcompress eval-sts --sts mteb/sts13-sts --sts mteb/sts17-crosslingual-sts:en-en --model s"
    )
    embed = make(work, "teacher-vectors/main", "teacher-embed", teacher="/models/big", revision=None)
    assert command_line(embed) == "sentcompress teacher-embed --teacher big"
    student = make(work, "students/s", "distill", method="hpd", student="teacher:3", lr=0.1)
    assert command_line(student) == "sentcompress distill --method hpd --student teacher:3"
