"""encode and search of folders of text files, as compress takes them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from beir import write_jsonl
from listening import Listener
from tiny_models import load_model, make_sentences

import sentcompress
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError
from sentcompress.stages import encode, search, split_documents
from sentcompress.store import WorkDirectory

SENTENCES = [f"{text.capitalize()}." for text in make_sentences(300, seed=8)]
LONG = " ".join(SENTENCES[:60])


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "guide" / "long.md").write_text(f"# The happy dog\n\n{LONG}\n", encoding="utf-8")
    (folder / "short.txt").write_text(f"{SENTENCES[100]}\n{SENTENCES[101]}\n", encoding="utf-8")
    (folder / "notes.rst").write_text(f"{SENTENCES[102]}\n", encoding="utf-8")
    (folder / "rows.jsonl").write_text(json.dumps({"_id": "r1", "text": SENTENCES[103]}) + "\n", encoding="utf-8")
    (folder / "empty.txt").write_text("\n", encoding="utf-8")
    (folder / "image.png").write_bytes(b"\x89PNG\r\n")
    return folder


def encoded(work: WorkDirectory, folder: Path, model: Path, output: Path, **others: object) -> Listener:
    told = Listener()
    params = encode.Params(lines=str(folder), output=output, model=str(model), dtype="float32", **others)  # type: ignore[arg-type]
    encode.run(params, work, told)
    return told


def test_a_file_of_a_folder_is_one_text(work: WorkDirectory, docs: Path, tiny_model: Path, tmp_path: Path) -> None:
    told = encoded(work, docs, tiny_model, tmp_path / "vectors")
    stored = sentcompress.read_vectors(tmp_path / "vectors")
    assert list(stored.ids) == ["guide/long.md", "notes.rst", "r1", "short.txt"]
    texts = [f"The happy dog {LONG}", SENTENCES[102], SENTENCES[103], f"{SENTENCES[100]}\n{SENTENCES[101]}"]
    expected = EncodeEngine(load_model(tiny_model), dtype="float32").encode(texts)
    np.testing.assert_allclose(stored.to_array(), expected, atol=1e-5)
    assert told.warnings == [
        "1 of the first 4 texts is longer than the 64 tokens that the model reads; its vector ignores the rest "
        "(`passages` encodes all of it, in passages)"
    ]
    assert any("1 .png" in note for note in told.notes)


def test_a_text_of_just_the_models_length_is_not_told(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    path = tmp_path / "docs" / "one.txt"
    for words, warned in ((62, False), (63, True)):  # and two special tokens
        path.write_text("dog " * words, encoding="utf-8")
        told = encoded(work, tmp_path / "docs", tiny_model, tmp_path / f"{words}")
        assert bool(told.warnings) == warned


def test_passages_have_the_ids_and_the_texts_of_split_documents(
    work: WorkDirectory, docs: Path, tiny_model: Path, tmp_path: Path
) -> None:
    for number in range(120):
        (docs / f"{number}.txt").write_text(SENTENCES[110 + number], encoding="utf-8")
    told = encoded(work, docs, tiny_model, tmp_path / "vectors", passages=True)
    assert not told.warnings
    ids = list(sentcompress.read_vectors(tmp_path / "vectors").ids)
    assert [one for one in ids if "long" in one][:2] == ["guide/long.md#0", "guide/long.md#1"]
    search.run(search.Params(collection=str(docs), model=str(tiny_model), device="cpu"), work)
    split = split_documents.run(split_documents.Params(inputs=(str(docs),)), work)
    rows = [json.loads(line) for line in (split.path / "held-out" / "corpus.jsonl").open(encoding="utf-8")]
    theirs = {row["_id"]: f"{row['title']} {row['text']}".strip() for row in rows}
    index = next(iter(work.newest("indexes")))
    ours = dict(json.loads(line) for line in (index.path / "texts" / "texts.jsonl").open(encoding="utf-8"))
    assert list(ours) == ids
    assert theirs.items() <= ours.items()


def test_search_finds_the_passage_of_a_long_file(work: WorkDirectory, docs: Path, tiny_model: Path) -> None:
    pytest.importorskip("faiss")
    params = search.Params(query=(SENTENCES[100],), collection=str(docs), model=str(tiny_model), device="cpu", top=50)
    found = search.run(params, work)
    ids = [one["id"] for one in found.answers[0].results]
    assert ids.count("short.txt#0") == 1
    assert {"guide/long.md#0", "guide/long.md#1"} <= set(ids)
    assert found.documents == len(ids)
    alone = search.Params(query=("dog",), collection=str(docs / "guide" / "long.md"), model=str(tiny_model))
    assert search.run(alone, work).documents == sum(one.startswith("guide") for one in ids)


def test_a_changed_file_makes_another_index(work: WorkDirectory, docs: Path, tiny_model: Path) -> None:
    pytest.importorskip("faiss")
    params = search.Params(collection=str(docs), model=str(tiny_model), device="cpu")
    before = search.run(params, work).documents
    assert search.run(params, work).documents == before
    (docs / "more.txt").write_text(SENTENCES[120], encoding="utf-8")
    assert search.run(params, work).documents == before + 1


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no file of text: it is empty"),
        ({"a.png": b"\x89PNG", "b.pdf": b"%PDF"}, "holds no file of text: it has"),
        ({"a.txt": b"\n\n"}, "has no text"),
        ({"a.txt": b"\xff\xfe\x00\x01" * 9}, "a.txt"),
    ],
)
def test_folders_without_usable_texts(
    files: dict[str, bytes], message: str, work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        encoded(work, folder, tiny_model, tmp_path / "vectors")
    pytest.importorskip("faiss")
    with pytest.raises(InputError, match=message):
        search.run(search.Params(collection=str(folder), model=str(tiny_model), device="cpu"), work)
    assert work.names("indexes") == []


def test_long_rows_of_a_table_are_told_and_can_be_cut(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    rows = [{"id": "a", "headline": "A dog", "body": LONG}, {"id": "b", "headline": "", "body": SENTENCES[0]}]
    table = write_jsonl(tmp_path / "docs.jsonl", rows)
    cut = "1 of the first 2 texts is longer than the 64 tokens that the model reads; its vector ignores the rest"
    assert [one.startswith(cut) for one in encoded(work, table, tiny_model, tmp_path / "whole").warnings] == [True]
    assert encoded(work, table, tiny_model, tmp_path / "parts", passages=True).warnings == []
    ids = list(sentcompress.read_vectors(tmp_path / "parts").ids)
    assert ids == [*(f"a#{number}" for number in range(len(ids) - 1)), "b#0"]
    pytest.importorskip("faiss")
    told = Listener()
    asked = search.Params(collection=str(table), model=str(tiny_model), device="cpu")
    search.run(asked, work, told)
    assert [one for one in told.warnings if cut in one] == [
        f"tiny-model: {cut} (`passages` searches all of it, in passages)"
    ]
    found = search.run(replace(asked, passages=True, query=("A dog",), top=50), work)
    assert sorted(one["id"] for one in found.answers[0].results) == sorted(ids)
    assert search.run(replace(asked, collection=None, query=("A dog",)), work).documents == len(ids), "read as before"


def test_a_collection_is_not_cut(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "1", "text": "dog"}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="is a collection"):
        encoded(work, tmp_path, tiny_model, tmp_path / "vectors", passages=True)
    pytest.importorskip("faiss")
    with pytest.raises(InputError, match="is a collection"):
        search.run(search.Params(collection=str(tmp_path), model=str(tiny_model), passages=True), work)
