"""A work directory whose teacher is one of its own models, moved to another place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_models import make_tiny_model

from sentcompress.errors import DamagedError, InputError, MissingArtifactError
from sentcompress.models.catalog import find_model
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
    (folder / "qrels").mkdir(parents=True)
    (folder / "own.txt").write_text("\n".join(sentences[:120]) + "\n", encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")
    documents = [{"_id": f"d{number}", "text": text} for number, text in enumerate(sentences[120:180])]
    queries = [{"_id": f"q{number}", "text": text} for number, text in enumerate(sentences[180:190])]
    for name, rows in (("corpus", documents), ("queries", queries)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    judged = "".join(f"q{number}\td{number}\t1\n" for number in range(10))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
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
    retrieval = eval_retrieval.Params(**searched, queries="small", documents="teacher", index=("flat",), rounds=1)
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


def test_everything_is_fresh_and_goes_on_after_a_move(
    tmp_path: Path, data: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "_draw", lambda chart: (f"<svg>{chart.name}</svg>", chart.name.encode()))
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
    assert "It was made from big by hpd, from the student teacher:1. big was made from tiny-model." in card
    assert "| `students/big` | `sentcompress distill --method mse " in card
    assert "| `model tiny-model` |" in card
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
    assert vectors.inputs == {"sentences/main": work.get("sentences").digest, "students/big": big.digest}
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


def test_a_teacher_that_was_replaced_or_removed_is_told(tmp_path: Path, data: Path, tiny_model: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    make_teacher(work, data, tiny_model)
    embed(work, "big")
    train(work, "small")
    kept = shutil.copytree(work.path / "students" / "big", tmp_path / "kept")
    make_tiny_model(tmp_path / "other", seed=7)
    train(work, "big", student=str(tmp_path / "other"), teacher_vectors="main", force=True)
    assert states(work)["teacher-vectors/of-big"] == ("stale", "students/big has changed")
    assert states(work)["students/small"] == ("stale", "teacher-vectors/of-big is stale")
    with pytest.raises(InputError, match="the teacher students/big is no longer the one that made teacher-vectors/of-"):
        train(work, "small")
    shutil.rmtree(work.path / "students" / "big")
    assert states(work)["teacher-vectors/of-big"] == ("stale", "students/big is gone")
    with pytest.raises(MissingArtifactError, match="no students named 'big'"):
        train(work, "small")
    weights = kept / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    shutil.copytree(kept, work.path / "students" / "big")
    with pytest.raises(DamagedError):
        train(work, "small")
