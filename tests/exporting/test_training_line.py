"""What a student learnt from, looked up in manifests."""

from __future__ import annotations

from pathlib import Path

from sentcompress.exporting.training_line import chose_by_graded_pairs, learnt_projection, students_of
from sentcompress.store import Artifact, Request, WorkDirectory

TEACHER = "7" * 64


def make(work: WorkDirectory, reference: str, command: str, *inputs: Artifact, **outside: str) -> Artifact:
    kind, _, name = reference.partition("/")
    digests = {artifact.reference: artifact.digest for artifact in inputs}
    digests |= {f"{kind}:/x": digest for kind, digest in outside.items()}
    with work.build(Request(kind, name, command, {}, digests)) as build:
        with build.write("data") as path:
            path.write_text(reference)
        return build.finish({})


def test_the_line_of_an_exported_student(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    table = make(work, "sentences/main", "augment")
    other = make(work, "sentences/other", "augment")
    vectors = make(work, "teacher-vectors/main", "teacher-embed", table, model=TEACHER)
    projection = make(work, "projections/pca-8", "fit-pca", vectors)
    student = make(work, "students/s", "distill", table, vectors, projection)
    plain = make(work, "students/plain", "distill", table, vectors, file="1" * 64)
    export = make(work, "exports/s", "export", student)
    for model in (student, export):
        found = learnt_projection(work, model.reference, model.digest, TEACHER)
        assert found is not None
        assert found.reference == "projections/pca-8"
        assert [a.name for a in students_of(work, model.reference, model.digest, table)] == ["s"]
    assert learnt_projection(work, student.reference, student.digest, vectors.digest) is not None
    assert learnt_projection(work, student.reference, student.digest, "8" * 64) is None
    assert learnt_projection(work, plain.reference, plain.digest, TEACHER) is None
    assert students_of(work, student.reference, student.digest, other) == []
    assert (chose_by_graded_pairs(student), chose_by_graded_pairs(plain)) == (False, True)
