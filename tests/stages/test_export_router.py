"""export --router: queries of the student, documents of the teacher, in one sentence-transformers model."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from search_documents import make_documents
from sentence_transformers import SentenceTransformer
from tiny_models import load_model, make_sentences, make_tiny_model

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, SentcompressError
from sentcompress.exporting import router
from sentcompress.models.catalog import find_model
from sentcompress.models.layout import save_encoder
from sentcompress.models.model_files import weight_bytes
from sentcompress.stages import eval_search, export, select
from sentcompress.store import Artifact, WorkDirectory

TEXTS = make_sentences(30, seed=3)


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the same width as `tiny_model`, with a prompt, a shorter limit and its case folded."""
    folder = make_tiny_model(tmp_path_factory.mktemp("student") / "student", layers=1, seed=5)
    encoder = load_model(folder)
    encoder.text = replace(encoder.text, prompt="woman reads ", max_length=20, lower_case=True).trained()
    save_encoder(encoder, folder)
    return folder


def exported(work: WorkDirectory, model: Path, documents: Path) -> Artifact:
    return export.run(export.Params(model=str(model), formats=("folder",), router=str(documents), name="both"), work)


def engine_vectors(folder: Path) -> np.ndarray:
    return EncodeEngine(load_model(folder), dtype="float32").encode(TEXTS)


def test_each_route_gives_the_vectors_of_its_model(work: WorkDirectory, student: Path, tiny_model: Path) -> None:
    made = exported(work, student, tiny_model)
    model = SentenceTransformer(str(made.path / "router"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(model.encode_query(TEXTS), engine_vectors(student), atol=1e-5)
    np.testing.assert_allclose(model.encode_document(TEXTS), engine_vectors(tiny_model), atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS), engine_vectors(tiny_model), atol=1e-5)
    checked = made.facts["router"]["checked"]
    assert set(checked) == {"query", "document"}
    assert all(one["min_cosine"] >= 0.9999 for one in checked.values())
    assert not [path for path in made.path.rglob("*") if path.suffix in (".bin", ".pkl", ".pt")]


def test_prompts_of_documents_are_used_without_a_task_too(work: WorkDirectory, student: Path, tiny_model: Path) -> None:
    made = exported(work, tiny_model, student)
    model = SentenceTransformer(str(made.path / "router"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(model.encode_query(TEXTS), engine_vectors(tiny_model), atol=1e-5)
    for encode in (model.encode_document, model.encode):
        np.testing.assert_allclose(encode(TEXTS), engine_vectors(student), atol=1e-5)


def test_each_route_has_the_prompt_of_its_models_task(work: WorkDirectory, student: Path, tmp_path: Path) -> None:
    teacher = make_tiny_model(tmp_path / "teacher", seed=2)
    encoder = load_model(teacher)
    encoder.text = replace(encoder.text, prompts={"query": "the man ", "document": "a dog "})
    save_encoder(encoder, teacher)
    folder = exported(work, student, teacher).path / "router"
    model, own = (SentenceTransformer(str(path), device="cpu", local_files_only=True) for path in (folder, teacher))
    np.testing.assert_allclose(model.encode_document(TEXTS), own.encode_document(TEXTS), atol=1e-5)
    np.testing.assert_allclose(model.encode(TEXTS), own.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(model.encode_query(TEXTS), engine_vectors(student), atol=1e-5)


def test_the_card_tells_how_to_use_it(work: WorkDirectory, student: Path, tiny_model: Path) -> None:
    made = exported(work, student, tiny_model)
    section = (made.path / "README.md").read_text(encoding="utf-8").split("## Search vectors of the teacher")[1]
    (lines,) = re.findall(r"```python\n(.*?)```", section.split("\n## ")[0], flags=re.DOTALL)
    scope: dict[str, object] = {}
    exec(lines.replace("path/of/this/folder", str(made.path)), scope)
    assert np.shape(scope["queries"]) == np.shape(scope["documents"]) == (1, 32)


def test_the_router_is_no_part_of_the_models_size(work: WorkDirectory, student: Path, tiny_model: Path) -> None:
    made = exported(work, student, tiny_model)
    assert weight_bytes(made.path) == (made.path / "model.safetensors").stat().st_size
    assert set(made.facts["bytes"]) == {"model.safetensors"}


def test_another_model_of_the_documents_makes_it_stale(
    work: WorkDirectory, student: Path, tiny_model: Path, tmp_path: Path
) -> None:
    first = exported(work, student, tiny_model)
    assert exported(work, student, tiny_model).digest == first.digest
    assert exported(work, student, make_tiny_model(tmp_path / "other", seed=9)).digest != first.digest


def test_other_widths_are_refused(work: WorkDirectory, student: Path, tmp_path: Path) -> None:
    wide = make_tiny_model(tmp_path / "wide", width=48)
    with pytest.raises(InputError, match="have 32 dimensions, those of wide 48"):
        exported(work, student, wide)
    assert work.names("exports") == []


def test_a_router_that_does_not_give_the_models_vectors_is_not_kept(
    work: WorkDirectory, student: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = router.write_router

    def swapped(routes: dict[str, object], folder: Path) -> None:
        write(dict(zip(routes, reversed(list(routes.values())), strict=True)), folder)  # type: ignore[arg-type]

    monkeypatch.setattr(router, "write_router", swapped)
    with pytest.raises(SentcompressError, match="router's route query"):
        exported(work, student, tiny_model)
    assert work.names("exports") == []


def test_a_router_folder_is_no_model_but_its_routes_are(work: WorkDirectory, student: Path, tiny_model: Path) -> None:
    folder = exported(work, student, tiny_model).path / "router"
    with pytest.raises(InputError, match="a model for each of its routes") as caught:
        find_model(work, str(folder))
    assert caught.value.hint == f"name the model of one route: {folder / 'document'} or {folder / 'query'}"
    assert find_model(work, str(folder / "document")).load().depth == 2
    assert find_model(work, str(folder / "query")).load().depth == 1


def test_a_router_written_by_sentence_transformers_is_refused_too(
    work: WorkDirectory, student: Path, tiny_model: Path, tmp_path: Path
) -> None:
    from sentence_transformers.models import Router

    routes = [list(SentenceTransformer(str(folder), device="cpu").children()) for folder in (student, tiny_model)]
    SentenceTransformer(modules=[Router.for_query_document(*routes)], device="cpu").save(str(tmp_path / "theirs"))
    with pytest.raises(InputError, match="a model for each of its routes") as caught:
        find_model(work, str(tmp_path / "theirs"))
    assert "save the modules of one route" in str(caught.value.hint)


def test_the_card_of_a_selected_student_has_the_scores_of_the_one_that_was_selected(
    work: WorkDirectory, tiny_model: Path
) -> None:
    make_documents(work, TEXTS, [" ".join(text.split()[:4]) for text in TEXTS[:9]])
    other = make_tiny_model(tiny_model.parent / "other", seed=4)
    for model in (tiny_model, other):
        asked = eval_search.Params(
            model=str(model), compare=str(tiny_model), keep_index=True, bootstrap=0, device="cpu", name=model.name
        )
        eval_search.run(asked, work)
    select.run(select.Params(inputs=(str(tiny_model), str(other)), name="best", rank=2), work)
    made = export.run(export.Params(model="best", formats=("folder",), name="best"), work)
    card = (made.path / "README.md").read_text(encoding="utf-8")
    assert "Search fidelity, documents by tiny-model:" in card
    assert "| other, documents by tiny-model |" in card
