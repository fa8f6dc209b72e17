"""The one rule of staleness, on artifacts that are changed below it."""

from __future__ import annotations

import shutil

from sentcompress.store import MANIFEST, Artifact, Freshness, Request, WorkDirectory, change_of


def make(work: WorkDirectory, reference: str, inputs: dict[str, str] | None = None, text: str = "x") -> Artifact:
    kind, name = reference.split("/")
    with work.build(Request(kind, name, "any", {}, {**(inputs or {}), "file:/text": text})) as build:
        with build.write("data") as path:
            path.write_text(text)
        return build.finish({})


def test_what_became_of_an_input(work: WorkDirectory) -> None:
    student = make(work, "students/s")
    assert change_of(work, student.reference, student.digest) == ""
    assert change_of(work, student.reference, "1" * 64) == "changed"
    assert change_of(work, "students/other", "1" * 64) == "gone"
    assert change_of(work, "no reference", "1" * 64) == "gone"
    (student.path / MANIFEST).write_text("{")
    assert change_of(work, student.reference, student.digest) == "damaged"


def test_staleness_goes_down_the_line(work: WorkDirectory) -> None:
    table = make(work, "sentences/main")
    student = make(work, "students/s", {table.reference: table.digest})
    export = make(work, "exports/s", {student.reference: student.digest})
    assert Freshness(work).state(export) == ("fresh", "")
    make(work, "sentences/main", text="others")
    assert Freshness(work).state(student) == ("stale", "sentences/main has changed")
    assert Freshness(work).state(export) == ("stale", "students/s is stale")


def test_the_files_of_a_model_of_the_work_directory(work: WorkDirectory) -> None:
    def digest(place: str) -> str | None:
        return {"students/s": "1" * 64, "exports/s": "2" * 64}[place]

    table = make(work, "sentences/main")
    make(work, "students/s", {table.reference: table.digest})
    export = make(work, "exports/s", {table.reference: table.digest})
    of_student = make(work, "teacher-vectors/a", {"model:students/s": "1" * 64})
    of_export = make(work, "teacher-vectors/b", {"model:exports/s": "2" * 64})
    earlier = make(work, "teacher-vectors/c", {"model:students/s": "3" * 64})
    assert Freshness(work, digest).state(of_student) == Freshness(work, digest).state(of_export) == ("fresh", "")
    assert Freshness(work, digest).state(earlier) == ("stale", "students/s has changed")
    make(work, "sentences/main", text="others")
    assert Freshness(work, digest).state(of_student) == ("stale", "students/s is stale")
    # An export is stale as soon as its card lacks a score; its model is the same.
    assert Freshness(work, digest).state(export) == ("stale", "sentences/main has changed")
    assert Freshness(work, digest).state(of_export) == ("fresh", "")
    (export.path / MANIFEST).write_text("{")
    assert Freshness(work, digest).state(of_export) == ("stale", "exports/s is damaged")
    shutil.rmtree(work.path / "students" / "s")
    assert Freshness(work, digest).state(of_student) == ("stale", "students/s is gone")


def test_models_from_outside_are_asked_for_once_and_only_if_they_can_be(work: WorkDirectory) -> None:
    asked: list[str] = []

    def digest(name: str) -> str | None:
        asked.append(name)
        return "2" * 64 if name == "here" else None

    one = make(work, "students/a", {"model:here": "1" * 64, "model:hub/there": "3" * 64})
    two = make(work, "students/b", {"model:here": "2" * 64})
    freshness = Freshness(work, digest)
    assert freshness.state(one) == ("stale", "here has changed")
    assert freshness.state(two) == ("fresh", "")
    assert freshness.state(two) == ("fresh", "")
    assert asked.count("here") == 1
    assert Freshness(work).state(one) == ("fresh", "")
