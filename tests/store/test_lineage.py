"""What a model was made of, what it learnt from, and what was measured of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentcompress.store import (
    METHOD_OF,
    Artifact,
    Request,
    WorkDirectory,
    ancestors,
    held_nothing_out,
    learnt_projection,
    line_of,
    measurements,
    students_of,
    taught_by,
)

STUDENT = {"reference": "students/s", "digest": "5" * 64, "label": "s"}
TEACHER = {"reference": "model:owner/t", "digest": "7" * 64, "label": "owner/t"}


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


def test_the_line_of_a_student_ends_at_its_teacher(work: WorkDirectory) -> None:
    table = made(work, "sentences/main", "augment")
    made(work, "students/big", "train-teacher", table)
    inputs = {table.reference: table.digest, "model:students/big": TEACHER["digest"]}
    vectors = make(work, "teacher-vectors/main", "teacher-embed", inputs)
    student = made(work, "students/s", "distill", table, vectors)
    line = [artifact.reference for artifact in ancestors(work, student.reference, student.digest)]
    assert line == ["students/s", "sentences/main", "teacher-vectors/main"]
    assert students_of(work, student.reference, student.digest, table) == [student]


def test_only_scores_of_this_very_model_count(work: WorkDirectory) -> None:
    make(work, "evaluations/a", "eval-sts", facts={"model": STUDENT})
    make(work, "evaluations/older", "eval-sts", facts={"model": STUDENT | {"digest": "6" * 64}})
    make(work, "evaluations/other", "eval-sts", facts={"model": TEACHER})
    assert [a.name for a in measurements(work, "students/s", "5" * 64)] == ["a"]


def test_the_line_is_followed_as_far_as_it_is_asked_for(work: WorkDirectory) -> None:
    sentences = make(work, "sentences/main", "augment")
    first = make(work, "students/a", "distill", {sentences.reference: sentences.digest}, {"teacher": "owner/t"})
    turned = make(work, "students/b", "whiten", {first.reference: first.digest})
    last = make(work, "students/c", "finetune", {turned.reference: turned.digest})

    def names(**how: Any) -> list[str]:
        return [artifact.reference for artifact in line_of(work, last.reference, last.digest, **how)]

    assert names() == ["students/c", "students/b", "students/a", "sentences/main"]
    assert names(kinds=("students",)) == ["students/c", "students/b", "students/a"]
    assert names(through=lambda one: one.manifest["command"] != "whiten") == ["students/c", "students/b"]
    assert taught_by(work, last.reference, last.digest) == "owner/t"
    assert taught_by(work, "model:owner/t", "7" * 64) is None


def made(work: WorkDirectory, reference: str, command: str, *inputs: Artifact, **outside: str) -> Artifact:
    kind, _, name = reference.partition("/")
    digests = {artifact.reference: artifact.digest for artifact in inputs}
    digests |= {f"{kind}:/x": digest for kind, digest in outside.items()}
    with work.build(Request(kind, name, command, {}, digests)) as build:
        with build.write("data") as path:
            path.write_text(reference)
        return build.finish({})


def test_the_line_of_an_exported_student(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    table = made(work, "sentences/main", "augment")
    other = made(work, "sentences/other", "augment")
    vectors = made(work, "teacher-vectors/main", "teacher-embed", table, model=TEACHER["digest"])
    projection = made(work, "projections/pca-8", "fit-pca", vectors)
    student = made(work, "students/s", "distill", table, vectors, projection)
    plain = made(work, "students/plain", "distill", table, vectors, file="1" * 64)
    export = made(work, "exports/s", "export", student)
    for model in (student, export):
        found = learnt_projection(work, model.reference, model.digest, TEACHER["digest"])
        assert found is not None
        assert found.reference == "projections/pca-8"
        assert [a.name for a in students_of(work, model.reference, model.digest, table)] == ["s"]
    assert learnt_projection(work, student.reference, student.digest, vectors.digest) is not None
    assert learnt_projection(work, student.reference, student.digest, "8" * 64) is None
    assert learnt_projection(work, plain.reference, plain.digest, TEACHER["digest"]) is None
    assert students_of(work, student.reference, student.digest, other) == []
    assert (held_nothing_out(student), held_nothing_out(plain)) == (False, True)
    documents = made(work, "documents/main", "split-documents")
    assert held_nothing_out(made(work, "students/chosen", "distill", table, vectors, documents))


def test_of_a_selection_only_the_chosen_model_is_in_the_line(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    tables = [made(work, f"sentences/{name}", "augment") for name in ("main", "other")]
    vectors = made(work, "teacher-vectors/main", "teacher-embed", tables[0], model=TEACHER["digest"])
    projection = made(work, "projections/pca-8", "fit-pca", vectors)
    plain = made(work, "students/plain", "distill", tables[0], vectors)
    projected = made(work, "students/projected", "distill", tables[1], vectors, projection, file="1" * 64)
    measured = [made(work, f"evaluations/{one.name}", "eval-search", one, tables[1]) for one in (plain, projected)]
    both = {one.reference: one.digest for one in (projected, plain, *measured)}
    for chosen in (plain, projected):
        best = make(work, f"students/best-{chosen.name}", "select", both, {METHOD_OF: chosen.reference})
        later = made(work, f"students/later-{chosen.name}", "finetune", best)
        for model in (best, later):
            line = ancestors(work, model.reference, model.digest)
            assert [one.reference for one in line if one.manifest["kind"] == "evaluations"] == []
            assert {plain.reference, projected.reference} & {one.reference for one in line} == {chosen.reference}
            own = chosen is projected
            found = learnt_projection(work, model.reference, model.digest, TEACHER["digest"])
            assert (found and found.reference) == (projection.reference if own else None)
            for table in tables:
                trained = students_of(work, model.reference, model.digest, table)
                assert [one.name for one in trained] == ([chosen.name] if (table is tables[1]) == own else [])
