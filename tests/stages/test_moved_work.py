"""A work directory whose teacher is one of its own models, moved to another place."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from beir import with_ids, write_beir
from tiny_models import make_tiny_model

from sentcompress.errors import InputError, MissingArtifactError
from sentcompress.models.catalog import find_model
from sentcompress.models.sources import resolve
from sentcompress.stages import (
    augment,
    bench,
    distill,
    eval_fidelity,
    eval_retrieval,
    eval_search,
    export,
    fit_pca,
    report,
    run,
    select,
    status,
    teacher_embed,
)
from sentcompress.store import Artifact, WorkDirectory

CPU: dict[str, Any] = {"device": "cpu", "dtype": "float32"}
NAMES_OF_TEACHER = ("teacher", "teacher-vectors/of-big")
TRAINED: dict[str, Any] = {**CPU, "epochs": 1, "max_steps": 2}
RECIPE = """
title = "A student of a student"

[[stage]]
command = "teacher-embed"
teacher = "big"
sentences = "main"
name = "of-recipe"
dtype = "float32"

[[stage]]
command = "distill"
method = "mse"
student = "teacher:1"
teacher-vectors = "of-recipe"
epochs = 1
max-steps = 2
dtype = "float32"
name = "by-recipe"
"""


@pytest.fixture
def data(tmp_path: Path, sentences: list[str]) -> Path:
    """Training sentences, a collection and a recipe, beside the work directory."""
    folder = tmp_path / "data"
    judged = [(f"q{number}", f"d{number}", 1) for number in range(10)]
    write_beir(folder, with_ids(sentences[120:180], "d"), with_ids(sentences[180:190], "q"), test=judged)
    (folder / "own.txt").write_text("\n".join(sentences[:120]) + "\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    return folder


def embed(work: WorkDirectory, teacher: str, **changes: Any) -> Artifact:
    return teacher_embed.run(teacher_embed.Params(teacher=teacher, **{**CPU, "name": "of-big", **changes}), work)


def train(work: WorkDirectory, name: str, method: str = "mse", **changes: Any) -> Artifact:
    asked = {**TRAINED, "student": "teacher:1", "teacher_vectors": "of-big", **changes}
    return distill.run(distill.Params(method=method, name=name, **asked), work)


def make_teacher(work: WorkDirectory, data: Path, tiny_model: Path) -> None:
    """A sentence table, and the student big, of a teacher from outside."""
    augment.run(augment.Params(inputs=(str(data / "own.txt"),), wordnet=0, back_translate=0), work)
    embed(work, str(tiny_model), name="main")
    train(work, "big", teacher_vectors="main")


def run_all(work: WorkDirectory, data: Path) -> list[Artifact]:
    """All that is made of big as a teacher."""
    searched: dict[str, Any] = {"collection": data, "compare": "teacher", "bootstrap": 10}
    retrieval = eval_retrieval.Params(
        **searched, query_model="small", document_model="teacher", index=("flat",), rounds=1
    )
    found = [
        embed(work, "big"),
        fit_pca.run(fit_pca.Params(teacher_vectors="of-big", dim=8), work),
        train(work, "small", "hpd", dim=8),
        train(work, "token", "simtde"),
        eval_fidelity.run(eval_fidelity.Params(model="small", compare="teacher", bootstrap=10, neighbours=2), work),
        *(eval_search.run(eval_search.Params(model=name, **searched), work) for name in ("small", "token")),
        eval_retrieval.run(retrieval, work),
        select.run(select.Params(inputs=("small", "token"), name="best"), work),
    ]
    outcome = run.run(run.Params(recipe=data / "recipe.toml"), work)
    # Last, because its card has the evaluations.
    exported = export.run(export.Params(model="small", formats=("onnx",)), work)
    timed: dict[str, Any] = {"runtimes": ("onnx",), "count": 8, "single": 1, "rounds": 1, "memory": False}
    bench_params = bench.Params(model="exports/small", compare=None, text=data / "own.txt", **timed)
    return [*found, *(done.artifact for done in outcome.done), exported, bench.run(bench_params, work)]


def moved(work: WorkDirectory, place: Path) -> WorkDirectory:
    place.parent.mkdir(parents=True)
    shutil.move(work.path, place)
    return WorkDirectory(place)


def states(work: WorkDirectory) -> dict[str, tuple[str, str]]:
    return {f"{row['kind']}/{row['name']}": (row["state"], row["why"]) for row in status.run(status.Params(), work)}


@pytest.mark.usefixtures("figures_not_drawn")
def test_everything_is_fresh_and_goes_on_after_a_move(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    here = WorkDirectory(tmp_path / "here" / "work")
    make_teacher(here, data, tiny_model)
    made = {one.reference: one.manifest for one in run_all(here, data)}
    there = moved(here, tmp_path / "there" / "else")
    for path in there.path.rglob("*"):
        if path.suffix in (".json", ".jsonl", ".md", ".toml"):
            assert str(here.path) not in path.read_text(encoding="utf-8"), path
    again = {one.reference: one.manifest for one in run_all(there, data)}
    assert again == made
    rows = status.run(status.Params(verify=True), there)
    assert {(row["state"], row["why"], *row["gone"]) for row in rows} == {("fresh", "")}
    assert len(rows) > len(made)
    assert report.run(report.Params(model="small"), there)["left_out"] == {}
    card = (there.path / "exports" / "small" / "README.md").read_text(encoding="utf-8")
    assert "Its teacher is big; it was made with hpd, starting from the teacher's last layer." in card
    assert "big was made from tiny-model." in card
    assert "| `students/big` | `sentcompress distill --method mse " in card
    assert "| `model tiny-model` |" in card
    assert "`model students/big`" not in card  # it is among the artifacts
    # The teacher is recognised, so that its vectors are projected.
    assert "projections/pca-8" in made["evaluations/fidelity-small"]["inputs"]
    retrieval = made["evaluations/retrieval-data-test-small-documents-big"]
    assert retrieval["facts"]["model"]["label"] == "small, documents by big (projected)"
    # New results of the old ones.
    assert train(there, "later", "simtde").facts["teacher"] == "big"
    fidelity = eval_fidelity.Params(model="later", compare="teacher", bootstrap=10, neighbours=2)
    assert eval_fidelity.run(fidelity, there).facts["compare"]["reference"] == "students/big"


def test_a_teacher_has_one_request_however_it_is_named(
    tmp_path: Path, data: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WorkDirectory(tmp_path / "work")
    make_teacher(work, data, tiny_model)
    big = work.get("students", "big")
    vectors = embed(work, str(big.path))
    assert vectors.manifest["line"][:3] == ["teacher-embed", "--teacher", "students/big"]
    assert vectors.parameters["teacher"] == "students/big"
    files = {"model:students/big": resolve(str(big.path / "model")).digest}
    assert vectors.inputs == {"sentences/main": work.get("sentences").digest, **files}
    monkeypatch.chdir(work.path / "students")
    names = ("big", "students/big", "./big", "../students/big/model", str(big.path / "model"), "teacher")
    for name in (*names, "teacher-vectors/of-big"):
        assert embed(work, name).manifest == vectors.manifest, name


def test_an_export_teaches_after_a_move(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    here = WorkDirectory(tmp_path / "here" / "work")
    make_teacher(here, data, tiny_model)
    exported = export.run(export.Params(model="big", formats=("folder",)), here)
    vectors = embed(here, str(exported.path))
    there = moved(here, tmp_path / "there" / "work")
    assert embed(there, "exports/big").manifest == vectors.manifest
    assert find_model(there, "teacher").reference == "exports/big"
    assert train(there, "token", "simtde").facts["teacher"] == "big (export)"
    assert states(there)["students/token"] == ("fresh", "")


def test_another_card_is_the_same_teacher(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    make_teacher(work, data, tiny_model)
    asked = export.Params(model="big", formats=("folder",))
    first = export.run(asked, work)
    vectors = embed(work, "exports/big")
    student = train(work, "token", "simtde")
    eval_search.run(eval_search.Params(model="big", collection=data, compare=str(tiny_model), bootstrap=10), work)
    second = export.run(replace(asked, force=True), work)
    assert second.digest != first.digest
    assert states(work)["teacher-vectors/of-big"] == states(work)["students/token"] == ("fresh", "")
    assert embed(work, "exports/big").manifest == vectors.manifest
    assert train(work, "token", "simtde").manifest == student.manifest
    assert find_model(work, "teacher").digest == second.digest
    train(work, "later", "simtde")


def test_weights_that_were_changed_in_place_are_embedded_again(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    make_teacher(work, data, tiny_model)
    vectors = embed(work, "big")
    weights = work.path / "students" / "big" / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert states(work)["teacher-vectors/of-big"] == ("stale", "students/big has changed")
    assert embed(work, "big").inputs != vectors.inputs
    assert find_model(work, "teacher").reference == "students/big"


def test_a_copy_of_the_teacher_is_recognised(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    make_teacher(work, data, tiny_model)
    embed(work, "big")
    fit_pca.run(fit_pca.Params(teacher_vectors="of-big", dim=8), work)
    train(work, "small", "hpd", dim=8)
    copy = shutil.copytree(work.path / "students" / "big" / "model", tmp_path / "copy" / "big")
    for teacher in (str(copy), "big", "teacher", "teacher-vectors/of-big"):
        params = eval_fidelity.Params(model="small", compare=teacher, bootstrap=10, neighbours=2, name="f", force=True)
        assert "projections/pca-8" in eval_fidelity.run(params, work).inputs, teacher
    other = eval_fidelity.Params(model="small", compare=str(tiny_model), bootstrap=10, neighbours=2)
    assert "projections/pca-8" not in eval_fidelity.run(other, work).inputs


def test_the_vectors_own_command_does_not_name_them(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    make_teacher(work, data, tiny_model)
    embed(work, "big", max_length=9)
    again = embed(work, "teacher", force=True)
    assert again.manifest["line"][:3] == ["teacher-embed", "--teacher", "students/big"]
    assert "--max-length" in again.manifest["line"]


def test_a_teacher_that_was_replaced_or_removed_is_told(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    make_teacher(work, data, tiny_model)
    vectors = embed(work, "big")
    train(work, "small")
    kept = shutil.copytree(work.path / "students" / "big", tmp_path / "kept")
    make_tiny_model(tmp_path / "other", seed=7)
    train(work, "big", student=str(tmp_path / "other"), teacher_vectors="main", force=True)
    assert states(work)["teacher-vectors/of-big"] == ("stale", "students/big has changed")
    assert states(work)["students/small"] == ("stale", "students/big has changed")
    uses = (lambda: train(work, "small"), *(partial(find_model, work, name) for name in NAMES_OF_TEACHER))
    for use in uses:
        with pytest.raises(InputError, match="the teacher students/big is no longer the one that made") as replaced:
            use()
        assert replaced.value.hint == f"run: {vectors.command_line()}"
    shutil.rmtree(work.path / "students" / "big")
    assert states(work)["teacher-vectors/of-big"] == ("stale", "students/big is gone")
    for use in uses:
        with pytest.raises(MissingArtifactError, match="big, the teacher that made teacher-vectors/of-big, no") as gone:
            use()
        assert "teacher-embed --teacher MODEL --sentences main --name of-big --work" in str(gone.value.hint)
    weights = kept / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    shutil.copytree(kept, work.path / "students" / "big")
    for use in uses:
        with pytest.raises(InputError, match="the teacher students/big is no longer the one that made"):
            use()
