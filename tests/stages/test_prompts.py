"""Stages on a model with named prompts: queries and documents are encoded as sentence-transformers encodes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from beir import with_ids, write_beir, write_jsonl
from listening import Listener
from search_documents import make_documents
from sentence_transformers import SentenceTransformer
from tiny_models import make_prompted, make_sentences

from sentcompress.cli.main import _run
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding import batches
from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.errors import InputError, UsageError
from sentcompress.evaluation.metrics import NDCG, SEARCH_FIDELITY
from sentcompress.evaluation.results import read_evaluation
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import read_scores, value_of
from sentcompress.stages import (
    augment,
    distill,
    encode,
    eval_fidelity,
    eval_retrieval,
    eval_search,
    export,
    fit_quantizer,
    mine_negatives,
    search,
    status,
    teacher_embed,
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


def table_of(work: WorkDirectory, tmp_path: Path) -> list[str]:
    """A sentence table of documents and of other text, with queries made of it; returns the role of each row."""
    make_documents(work, TEXTS[:60], QUERIES[:10], training_queries=QUERIES[20:30])
    other = write_jsonl(tmp_path / "other.jsonl", [{"text": " ".join(TEXTS[n : n + 4])} for n in range(60, 100, 4)])
    given = {"wordnet": 0, "back_translate": 0, "queries_per_text": 1}
    made = augment.run(augment.Params(inputs=("documents/main", str(other)), **given), work)
    table = SentenceTable(made.path)
    roles = [role for file in range(len(table.files)) for role in table.roles(file)]
    assert made.facts["by_source"]["query"] > 0
    assert roles[:80] == ["document"] * 60 + ["query"] * 10 + [""] * 10
    assert set(roles[80:]) == {"query"}
    return roles


def encoded_by_role(library: SentenceTransformer, texts: Sequence[str], roles: Sequence[str]) -> np.ndarray:
    encoders = {"": library.encode, "query": library.encode_query, "document": library.encode_document}
    return np.stack([encoders[role]([text])[0] for text, role in zip(texts, roles, strict=True)])


def test_the_teacher_encodes_each_sentence_in_its_role(
    work: WorkDirectory,
    prompted: Path,
    library: SentenceTransformer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles, told = table_of(work, tmp_path), Listener()
    # The windows are those of texts with their prompts.
    monkeypatch.setattr(batches, "WINDOW_CHARACTERS", 500)
    params = teacher_embed.Params(teacher=str(prompted), dtype="float32", device="cpu")
    made = teacher_embed.run(params, work, told)
    texts = list(SentenceTable(work.get("sentences").path).sentences())
    vectors = NpyFiles(made.path).rows(np.arange(len(texts)))
    np.testing.assert_allclose(vectors, encoded_by_role(library, texts, roles), rtol=0, atol=1e-5)
    assert made.parameters["prompts"] == made.facts["prompts"] == BY_ROLE
    assert told.warnings == []
    assert f"prompted encodes queries with the prompt {PROMPTS['query']!r}" in told.notes
    with pytest.raises(InputError, match="content words cannot be encoded alone"):
        teacher_embed.run(teacher_embed.Params(teacher=str(prompted), content_words=0.5, name="twice"), work)


def test_shards_of_prompted_vectors_are_the_whole(
    work: WorkDirectory, prompted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of(work, tmp_path)
    monkeypatch.setattr(batches, "WINDOW_CHARACTERS", 500)
    options: dict[str, Any] = {"teacher": str(prompted), "dtype": "float32", "device": "cpu"}
    whole = teacher_embed.run(teacher_embed.Params(**options, name="whole"), work)
    for number in (1, 2, 3):
        teacher_embed.run(teacher_embed.Params(**options, name="parts", shard=f"{number}/3"), work)
    assert _run(["merge", "teacher-vectors/parts", "--work", str(work.path)]) == 0
    assert work.get("teacher-vectors", "parts").digest == whole.digest


def test_a_table_that_knows_no_roles_says_so(work: WorkDirectory, prompted: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS) + "\n")
    augment.run(augment.Params(inputs=(str(tmp_path / "lines.txt"),), wordnet=0, back_translate=0), work)
    told = Listener()
    made = teacher_embed.run(teacher_embed.Params(teacher=str(prompted), dtype="float32", device="cpu"), work, told)
    (warning,) = told.warnings
    assert warning.endswith("; sentences/main does not tell queries from documents, as augment documents/NAME does")
    assert "prompts" not in made.parameters


def test_fidelity_compares_sentences_in_their_roles(
    work: WorkDirectory, prompted: Path, library: SentenceTransformer, small_model: Path, tmp_path: Path
) -> None:
    roles = table_of(work, tmp_path)
    texts = list(SentenceTable(work.get("sentences").path).sentences())
    path = tmp_path / "vectors.npy"
    np.save(path, encoded_by_role(library, texts, roles))
    path.with_suffix(".txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    facts = [
        eval_fidelity.run(
            eval_fidelity.Params(model=str(small_model), compare=compare, name=name, show=0, **FAST), work
        ).facts
        for name, compare in (("ours", str(prompted)), ("theirs", str(path)))
    ]
    for ours, theirs in zip(*(read_scores(one) for one in facts), strict=True):
        assert ours.value == pytest.approx(theirs.value, abs=1e-3)
    assert facts[0]["compare"]["prompts"] == BY_ROLE
    assert "prompts" not in facts[1]["compare"]


def test_a_student_learns_the_prompted_vectors_and_is_scored_by_them(
    work: WorkDirectory, prompted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of(work, tmp_path)
    make_documents(work, TEXTS[:60], QUERIES, name="other")
    teacher_embed.run(teacher_embed.Params(teacher=str(prompted), dtype="float32", device="cpu"), work)
    numbers: dict[str, Any] = {"epochs": 1, "batch_size": 16, "max_steps": 2, "dtype": "float32", "device": "cpu"}
    made = distill.run(distill.Params(method="mse", student="teacher:1", dev=Path("documents/other"), **numbers), work)
    assert made.parameters["prompts"] == {"dev": BY_ROLE}
    searched = eval_search.run(
        eval_search.Params(model=made.reference, documents="other", query_part="dev", **FAST), work
    )
    assert searched.facts["compare"]["prompts"] == BY_ROLE
    assert made.facts["dev"] == pytest.approx(value_of(read_scores(searched.facts), SEARCH_FIDELITY), abs=0.5)


def test_negatives_are_those_of_prompted_vectors(
    work: WorkDirectory, prompted: Path, as_file: str, tmp_path: Path
) -> None:
    rows = "".join(f"{query}\t{text}\n" for query, text in zip(QUERIES, TEXTS[40:], strict=False))
    (tmp_path / "pairs.tsv").write_text(f"query\tpositive\n{rows}")
    options: dict[str, Any] = {"pairs": tmp_path / "pairs.tsv", "negatives": 3, "device": "cpu", "dtype": "float32"}
    ours, theirs = (
        mine_negatives.run(mine_negatives.Params(model=model, name=name, **options), work)
        for name, model in (("ours", str(prompted)), ("theirs", as_file))
    )
    assert ours.digest == theirs.digest
    assert ours.parameters["prompts"] == {"model": BY_ROLE}


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
