"""Where vectors come from: names that keep evaluations of different vectors apart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from listening import Listener
from sentence_transformers import SentenceTransformer
from tiny_models import make_prompted, make_sentences

from sentcompress.encoding import evaluation_in_ranks
from sentcompress.encoding.embedder_sources import find_embedder
from sentcompress.encoding.sides import in_roles
from sentcompress.errors import InputError
from sentcompress.store import WorkDirectory


def test_files_of_vectors_that_are_called_alike_have_different_slugs(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    slugs = []
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "vectors.npy", np.ones((1, 3), dtype=np.float32))
        (tmp_path / name / "vectors.txt").write_text("one\n")
        slugs.append(find_embedder(work, str(tmp_path / name / "vectors.npy")).slug)
    assert slugs == ["ours-vectors.npy", "theirs-vectors.npy"]


def test_a_file_of_vectors_has_no_revision(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`revision` v1: vectors\.npy is not a model of the hub"):
        find_embedder(WorkDirectory(tmp_path / "work"), "vectors.npy", revision="v1")


def test_a_rank_whose_model_differs_from_that_of_rank_0_is_refused(tmp_path: Path, tiny_model: Path) -> None:
    """Each machine reads its own copy, unless the model is on a file system that they share."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    model = find_embedder(WorkDirectory(tmp_path / "work"), str(folder)).model
    assert model is not None
    assert evaluation_in_ranks._opened(model, "cpu", "float32").dimension == 32
    settings = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
    settings["max_seq_length"] = 5
    (folder / "sentence_bert_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(InputError, match="are not those that rank 0 reads"):
        evaluation_in_ranks._opened(model, "cpu", "float32")


def test_named_prompts_are_told_to_be_unused(tmp_path: Path, tiny_model: Path) -> None:
    told, work = Listener(), WorkDirectory(tmp_path / "work")
    for model in (tiny_model, make_prompted(tmp_path / "prompted", tiny_model)):
        find_embedder(work, str(model)).open(device="cpu", reporter=told)
    assert len(told.warnings) == 1
    assert told.warnings[0].startswith("prompted has named prompts that are not used (query)")


TEXTS = make_sentences(20, seed=7)
# The query's prompt together with a text is another text of the list, whose vector must not be taken for it.
PROMPTS = {"query": f"{TEXTS[0]} ", "document": "a quiet street ", "other": "two people "}
MIXED = [*TEXTS, *(f"{TEXTS[0]} {text}" for text in TEXTS[:5]), ""]


@pytest.mark.parametrize("default", [None, "other", "document"])
def test_texts_have_the_vectors_of_their_role_also_from_the_cache(
    tmp_path: Path, tiny_model: Path, default: str | None
) -> None:
    folder = make_prompted(tmp_path / "prompted", tiny_model, PROMPTS, default=default)
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    encoders = {"": model.encode, "query": model.encode_query, "document": model.encode_document}
    expected = {role: encode(MIXED) for role, encode in encoders.items()}
    source = find_embedder(WorkDirectory(tmp_path / "work"), str(folder))
    for role in ("", "query", "document", "", "query", "document"):
        own = source.of_role(role)
        embedder = own.open(device="cpu")
        np.testing.assert_allclose(embedder.encode(MIXED), expected[role], rtol=0, atol=1e-5)
        streamed = np.concatenate(list(embedder.stream([MIXED[:7], MIXED[7:]])))
        np.testing.assert_allclose(streamed, expected[role], rtol=0, atol=1e-5)
        counts = embedder.count_tokens(["dog"])
        assert counts is not None
        assert counts.lengths.tolist() == [len(f"{own.before_texts}dog".split()) + 2]
        assert own.is_model_of(source)
    # One folder for all roles: a vector is that of a text with its prompt.
    assert len(list((tmp_path / "work" / "cache").iterdir())) == 1


def test_a_model_without_prompts_has_one_source_for_all_roles(tmp_path: Path, tiny_model: Path) -> None:
    source = find_embedder(WorkDirectory(tmp_path / "work"), str(tiny_model))
    assert source.of_role("query") == source.of_role("document") == source.of_role("") == source
    sides = in_roles(source, source)
    assert (sides.prompts, sides.symmetric, sides.label) == ({}, True, source.label)
    documents, queries = sides.open(device="cpu", dtype="float32")
    assert documents is queries


def test_both_sides_of_a_prompted_model_are_one_model_in_memory(tmp_path: Path, tiny_model: Path) -> None:
    told = Listener()
    folder = make_prompted(tmp_path / "prompted", tiny_model, PROMPTS)
    source = find_embedder(WorkDirectory(tmp_path / "work"), str(folder))
    sides = in_roles(source, source)
    documents, queries = sides.open(device="cpu", dtype="float32", reporter=told)
    assert documents._embedder is queries._embedder  # type: ignore[attr-defined]
    assert (sides.symmetric, sides.label, sides.inputs) == (True, "prompted", source.inputs)
    assert told.warnings == []
    assert told.notes == [
        f"prompted encodes queries with the prompt {PROMPTS['query']!r}",
        "prompted encodes documents with the prompt 'a quiet street '",
    ]


def test_a_prompt_that_sentence_transformers_does_not_find_is_told(tmp_path: Path, tiny_model: Path) -> None:
    told, folder = Listener(), make_prompted(tmp_path / "prompted", tiny_model, {"passage": "a quiet street "})
    source = find_embedder(WorkDirectory(tmp_path / "work"), str(folder))
    documents, _ = in_roles(source, source).open(device="cpu", dtype="float32", reporter=told)
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    np.testing.assert_allclose(documents.encode(TEXTS), model.encode_document(TEXTS), rtol=0, atol=1e-5)
    (warning,) = told.warnings
    assert warning.startswith("the prompt passage of prompted is not used: encode_document of sentence-transformers")


def test_a_model_that_does_not_pool_its_prompts_is_refused_only_in_a_role(tmp_path: Path, tiny_model: Path) -> None:
    folder = make_prompted(tmp_path / "prompted", tiny_model)
    pooling = next(folder.glob("*Pooling/config.json"))
    pooling.write_text(json.dumps({**json.loads(pooling.read_text()), "include_prompt": False}))
    source = find_embedder(WorkDirectory(tmp_path / "work"), str(folder))
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    for role, encode in (("", model.encode), ("document", model.encode_document)):
        found = source.of_role(role).open(device="cpu").encode(TEXTS)
        np.testing.assert_allclose(found, encode(TEXTS), rtol=0, atol=1e-5)
    with pytest.raises(InputError, match="prompted leaves the tokens of a prompt out of its pooling"):
        source.of_role("query")
