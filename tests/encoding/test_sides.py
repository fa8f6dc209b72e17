"""Documents by one model and queries by another, with the projection between teacher and student."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distilling import make_work
from tiny_models import make_sentences, make_tiny_model

from sentcompress.commands import eval_retrieval, eval_search
from sentcompress.commands.spelling import spelled_hint
from sentcompress.encoding.embedder_sources import find_embedder
from sentcompress.encoding.sides import Sides, projection_between, sides_of
from sentcompress.errors import InputError
from sentcompress.models.principal_axes import Projection
from sentcompress.stages import fit_pca, whiten
from sentcompress.store import Artifact, Request, WorkDirectory

TEXTS = make_sentences(40)


@pytest.fixture
def work(tmp_path: Path, tiny_model: Path) -> WorkDirectory:
    """The teacher's vectors, a projection to 8 dimensions, and a student that was taught by it."""
    work = make_work(tmp_path / "work", tiny_model, TEXTS)
    fit_pca.run(fit_pca.Params(dim=8), work)
    add_student(work, tmp_path, {})
    return work


def find_sides(work: WorkDirectory, documents: str | None, queries: str | None) -> Sides:
    return sides_of(work, find_embedder(work, documents), find_embedder(work, queries))


def add_student(work: WorkDirectory, folder: Path, options: Mapping[str, Any], name: str = "small") -> Artifact:
    projection = work.get("projections", "pca-8")
    asked = Request("students", name, "distill", dict(options), {projection.reference: projection.digest})
    with work.build(asked, force=True) as build, build.write("model") as path:
        shutil.copytree(make_tiny_model(folder / f"student-{name}", width=8, seed=1), path, dirs_exist_ok=True)
    with work.build(asked) as build:
        return build.finish({"options": dict(options)})


def test_the_teachers_documents_are_projected_for_its_student(work: WorkDirectory, tiny_model: Path) -> None:
    sides = find_sides(work, "teacher", "student")
    assert not sides.symmetric
    assert sides.label == "small, documents by tiny-model (projected)"
    assert sides.slug == "small-documents-tiny-model"
    assert {"students/small", "projections/pca-8", f"model:{tiny_model}"} <= set(sides.inputs)
    documents, queries = sides.open(device="cpu", dtype="float32")
    assert documents.dimension == queries.dimension == 8 == documents.described()["dimension"]
    plain = find_sides(work, "teacher", "teacher").open(device="cpu", dtype="float32")[0].encode(TEXTS)
    expected = Projection.load(work.get("projections").path).apply(plain)
    np.testing.assert_allclose(documents.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(np.concatenate(list(documents.stream([TEXTS]))), expected, atol=1e-5)


def test_a_student_of_uncentred_targets_gets_uncentred_documents(work: WorkDirectory, tmp_path: Path) -> None:
    add_student(work, tmp_path, {"centre": False}, "raw")
    raw, centred = (
        find_sides(work, "teacher", name).open(device="cpu", dtype="float32")[0].encode(TEXTS)
        for name in ("raw", "small")
    )
    projection = Projection.load(work.get("projections").path)
    np.testing.assert_allclose(raw - centred, np.tile(projection.weight @ projection.mean, (len(TEXTS), 1)), atol=1e-5)


def test_one_model_on_both_sides_is_opened_once(work: WorkDirectory) -> None:
    sides = find_sides(work, None, "student")
    assert sides.symmetric
    assert sides.label == sides.slug == "small"
    documents, queries = sides.open(device="cpu", dtype="float32")
    assert documents is queries


def test_an_export_and_a_student_made_of_a_student_lead_to_the_same_projection(
    work: WorkDirectory, tmp_path: Path
) -> None:
    for kind, name, made_from in (("students", "tuned", "small"), ("exports", "out", "tuned")):
        parent = work.get("students", made_from)
        with work.build(Request(kind, name, "test", {}, {parent.reference: parent.digest})) as build:
            with build.write("model") as path:
                shutil.copytree(tmp_path / "student-small", path, dirs_exist_ok=True)
            build.finish({})
        sides = find_sides(work, "teacher", name)
        assert sides.projection is not None
        assert sides.projection.artifact.name == "pca-8"


def test_vectors_of_different_length_cannot_be_compared(work: WorkDirectory, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "other", width=16, seed=5)
    sides = find_sides(work, str(other), "small")
    assert sides.projection is None
    with pytest.raises(InputError, match="other has 16 dimensions and small 8: they cannot be compared"):
        sides.open(device="cpu", dtype="float32")


def test_a_projection_that_was_fitted_anew_is_not_the_students(work: WorkDirectory) -> None:
    fit_pca.run(fit_pca.Params(dim=8, sample=20, force=True), work)
    teacher, student = find_embedder(work, "teacher"), find_embedder(work, "student")
    with pytest.raises(
        InputError, match="students/small was made with projections/pca-8, which has changed since"
    ) as raised:
        projection_between(work, teacher, student)
    hint = partial(spelled_hint, raised.value.alternatives)
    assert (
        hint(eval_retrieval.Params) == "train the student again, or choose a --document-model that needs no projection"
    )
    assert hint(eval_search.Params) == "train the student again"


def test_the_projection_does_not_lead_to_a_whitened_student(work: WorkDirectory) -> None:
    whiten.run(whiten.Params(model="small", dim=6, name="white"), work)
    with pytest.raises(InputError, match="tiny-model has 32 dimensions and white 6"):
        find_sides(work, "teacher", "white").open(device="cpu", dtype="float32")
