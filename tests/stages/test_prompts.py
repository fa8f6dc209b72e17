"""Stages on a model with named prompts: queries and documents are encoded as sentence-transformers encodes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from beir import with_ids, write_beir
from listening import Listener
from search_documents import make_documents
from sentence_transformers import SentenceTransformer
from tiny_models import make_prompted, make_sentences

from sentcompress.errors import UsageError
from sentcompress.evaluation.metrics import NDCG, SEARCH_FIDELITY
from sentcompress.evaluation.results import read_evaluation
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import read_scores, value_of
from sentcompress.stages import (
    encode,
    eval_fidelity,
    eval_retrieval,
    eval_search,
    export,
    fit_quantizer,
    search,
    status,
)
from sentcompress.store import Artifact, WorkDirectory

pytest.importorskip("faiss")
PROMPTS = {"query": "the man reads ", "document": "a quiet street on ", "other": "two dogs "}
BY_ROLE = {"query": PROMPTS["query"], "document": PROMPTS["document"]}
# Longer than the queries: a file of vectors has only one for each text.
TEXTS = [text for text in make_sentences(300, seed=12) if len(text.split()) > 5][:160]
QUERIES = [" ".join(text.split()[:4]) for text in TEXTS[:40]]
FAST: dict[str, Any] = {"device": "cpu", "bootstrap": 0}


@pytest.fixture(scope="module", params=[None, "other"], ids=["no-default", "default"])
def prompted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    return make_prompted(tmp_path_factory.mktemp("prompted") / "prompted", tiny_model, PROMPTS, default=request.param)


@pytest.fixture(scope="module")
def library(prompted: Path) -> SentenceTransformer:
    return SentenceTransformer(str(prompted), device="cpu", local_files_only=True)


@pytest.fixture(scope="module")
def as_file(library: SentenceTransformer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The vectors that sentence-transformers computes of the queries and documents, in a file."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.npy"
    np.save(path, np.concatenate([library.encode_query(QUERIES), library.encode_document(TEXTS)]))
    path.with_suffix(".txt").write_text("\n".join([*QUERIES, *TEXTS]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    judged = [(f"q{n}", f"d{n}", 1) for n in range(len(QUERIES))]
    rows = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(TEXTS)]
    return write_beir(tmp_path / "beir", rows, with_ids(QUERIES, "q"), test=judged)


def retrieved(work: WorkDirectory, collection: Path, model: Path | str, **others: Any) -> Artifact:
    options = {"index": ("flat",), "rounds": 1, **FAST, **others}
    return eval_retrieval.run(eval_retrieval.Params(collection=collection, model=str(model), **options), work)


def ndcg(artifact: Artifact) -> float:
    return value_of(read_scores(artifact.facts), NDCG, part=EXACT)


def test_retrieval_is_that_of_encode_query_and_encode_document(
    work: WorkDirectory, collection: Path, prompted: Path, as_file: str, tiny_model: Path
) -> None:
    made, expected = retrieved(work, collection, prompted), retrieved(work, collection, as_file)
    assert ndcg(made) == pytest.approx(ndcg(expected), abs=1e-9)
    assert retrieved(work, collection, prompted, name="again").facts["scores"][0] == made.facts["scores"][0]
    plain = retrieved(work, collection, tiny_model)
    assert abs(ndcg(plain) - ndcg(made)) > 0.1
    assert made.facts["model"]["prompts"] == BY_ROLE
    assert made.parameters["prompts"] == {"model": BY_ROLE}
    told = "; prompts of prompted: 'the man reads ' before a query, 'a quiet street on ' before a document"
    assert read_evaluation(made).statement.endswith(told)
    assert "prompts" not in json.dumps([plain.facts, plain.parameters])
    rows = {row["name"]: row["facts"] for row in status.run(status.Params(), work)}
    assert rows[made.name]["query_prompt"] == PROMPTS["query"]
    assert not any("prompt" in name for name in rows[plain.name])


def test_the_cache_keeps_prompted_and_plain_vectors_apart(
    work: WorkDirectory, collection: Path, prompted: Path, as_file: str, tmp_path: Path
) -> None:
    """Sentences without roles come first, so that the cache has their vectors."""
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join([*QUERIES, *TEXTS]) + "\n")
    eval_fidelity.run(eval_fidelity.Params(text=(lines,), model=str(prompted), compare=as_file, **FAST), work)
    expected = ndcg(retrieved(work, collection, as_file))
    assert ndcg(retrieved(work, collection, prompted)) == pytest.approx(expected, abs=1e-9)


def test_search_fidelity_is_to_the_prompted_teacher(
    work: WorkDirectory, prompted: Path, as_file: str, small_model: Path
) -> None:
    make_documents(work, TEXTS, QUERIES)
    scores = []
    for name, compare in (("ours", str(prompted)), ("theirs", as_file), ("itself", str(prompted))):
        model = str(prompted if name == "itself" else small_model)
        made = eval_search.run(eval_search.Params(model=model, compare=compare, name=name, **FAST), work)
        scores.append(value_of(read_scores(made.facts), SEARCH_FIDELITY))
        assert made.facts["compare"].get("prompts", {}) == ({} if name == "theirs" else BY_ROLE)
        assert made.facts["model"].get("prompts", {}) == (BY_ROLE if name == "itself" else {})
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)
    assert scores[2] == pytest.approx(100)
    # The student has no prompts, and searches the teacher's vectors of documents with theirs.
    kept = {"model": str(prompted), "compare": as_file, "keep_index": True, "name": "kept"}
    assert eval_search.run(eval_search.Params(**kept, **FAST), work).facts["model"]["prompts"] == {
        "query": PROMPTS["query"]
    }


def test_a_quantizer_is_fitted_to_vectors_of_documents(work: WorkDirectory, prompted: Path, as_file: str) -> None:
    make_documents(work, TEXTS, QUERIES)
    options = {"vector_bytes": 8, "store": "int8", **FAST}
    of_model, of_file = (
        fit_quantizer.run(fit_quantizer.Params(model=str(prompted), compare=compare, name=name, **options), work)
        for name, compare in (("ours", str(prompted)), ("theirs", as_file))
    )
    assert of_model.facts["fidelity"] == pytest.approx(of_file.facts["fidelity"], abs=1e-6)
    assert of_model.facts["fidelity_of_float32"] == pytest.approx(100)
    assert of_model.facts["prompts"] == BY_ROLE
    made = export.run(export.Params(model=str(prompted), formats=("folder",), quantizer="ours", name="out"), work)
    card = (made.path / "README.md").read_text(encoding="utf-8")
    assert "--store quantizer -o stored/ --prompt-name document` writes them" in card
    assert 'prompt query | `"the man reads "`' in card


def test_search_finds_what_sentence_transformers_finds(
    work: WorkDirectory, collection: Path, prompted: Path, library: SentenceTransformer, small_model: Path
) -> None:
    told = Listener()
    params = search.Params(query=tuple(QUERIES[:5]), collection=str(collection), model=str(prompted), device="cpu")
    found = search.run(params, work, told)
    scores = library.encode_query(QUERIES[:5]) @ library.encode_document(TEXTS).T
    for answer, row in zip(found.answers, scores, strict=True):
        assert [one["score"] for one in answer.results] == pytest.approx(np.sort(row)[::-1][:10], abs=1e-5)
        assert answer.results[0]["id"] == f"d{row.argmax()}"
    assert told.warnings == []
    assert f"prompted encodes documents with the prompt {PROMPTS['document']!r}" in told.notes
    index = work.get("indexes", found.index.partition("/")[2])
    assert index.parameters["prompt"] == index.facts["prompt"] == PROMPTS["document"]
    again = search.run(params, work)  # with the index that is there
    assert [answer.results for answer in again.answers] == [answer.results for answer in found.answers]


def test_stored_vectors_are_compared_with_prompted_queries(
    work: WorkDirectory, collection: Path, prompted: Path, as_file: str, tmp_path: Path
) -> None:
    for name, prompt in (("right", "document"), ("wrong", None)):
        params = encode.Params(
            lines=str(collection), output=tmp_path / name, model=str(prompted), prompt_name=prompt, dtype="float32"
        )
        encode.run(params, work)
    told = Listener()
    options = {"index": ("flat",), "rounds": 1, **FAST, "collection": collection, "model": str(prompted)}
    right, wrong = (
        eval_retrieval.run(eval_retrieval.Params(**options, vectors=tmp_path / name, name=name), work, told)
        for name in ("right", "wrong")
    )
    assert ndcg(right) == pytest.approx(ndcg(retrieved(work, collection, as_file)), abs=1e-9)
    assert right.facts["model"]["prompts"] == BY_ROLE
    assert wrong.facts["model"]["prompts"] == {"query": PROMPTS["query"]}
    (warning,) = told.warnings
    assert "wrong were encoded with the default prompt, if any, but prompted encodes documents with the" in warning


def test_an_index_without_prompts_is_not_taken_for_one_with_them(
    work: WorkDirectory, collection: Path, prompted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as that of an earlier release."""
    params = search.Params(query=(QUERIES[0],), collection=str(collection), model=str(prompted), device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(search, "in_roles", lambda documents, queries: search.Sides(documents, queries))
        search.run(params, work)
    with pytest.raises(UsageError, match="already exists with different options"):
        search.run(params, work)
