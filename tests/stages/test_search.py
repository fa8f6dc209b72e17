"""search: answers of an index that is built once, two models side by side."""

from __future__ import annotations

import gzip
import json
import os
import re
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from beir import write_jsonl
from interrupting import interrupted
from listening import Listener
from search_documents import folder_with_unreadable, make_documents
from tiny_models import load_model, make_sentences, make_tiny_model

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.main import _run
from sentcompress.cli.search import _shown, show
from sentcompress.commands.search import COMMAND
from sentcompress.encoding import embedder_sources
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import BusyError, DamagedError, InputError, MissingArtifactError, UsageError
from sentcompress.evaluation.index_plan import CELLS, KINDS
from sentcompress.stages import search as stage
from sentcompress.stages.search import INDEX, Answer, Params, Result, run
from sentcompress.store import WorkDirectory
from sentcompress.store.locking import locked

pytest.importorskip("faiss")
TEXTS = make_sentences(700, seed=11)
QUERIES = TEXTS[3], " ".join(TEXTS[40].split()[:5])


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    path = tmp_path / "docs.jsonl"
    rows = [{"_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(TEXTS)]
    return write_jsonl(path, rows)


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("other") / "other", seed=9)


def search(work: WorkDirectory, *queries: str, **others: object) -> Result:
    return run(Params(query=queries, device="cpu", **others), work)  # type: ignore[arg-type]


def vectors(model: Path, texts: list[str]) -> np.ndarray:
    return EncodeEngine(load_model(model), dtype="float32", device="cpu").encode(texts)


def test_a_column_called_passages_is_not_an_index_of_passages(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    table = tmp_path / "docs.jsonl"
    rows = [{"_id": f"d{n}", "text": text, "passages": text} for n, text in enumerate(TEXTS[:20])]
    write_jsonl(table, rows)
    for column in ((), ("passages",)):
        for passages in (False, True):
            search(work, collection=str(table), model=str(tiny_model), column=column, passages=passages)
    assert len(work.names("indexes")) == 4


def test_an_index_that_does_not_fit_into_memory_is_refused_before_anything_is_encoded(
    work: WorkDirectory, tiny_model: Path, collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"collection": str(collection), "model": str(tiny_model)}
    monkeypatch.setattr(stage, "available_memory", lambda: 700 * 32)
    with monkeypatch.context() as patched:
        patched.setattr(stage._Search, "_spool", None)
        with pytest.raises(InputError) as refused:
            search(work, "dog", **asked)
    assert refused.value.message == "the index of 700 documents needs 89.6 kB of memory; 22.4 kB are available"
    assert refused.value.alternatives[0] == "choose a smaller `index`: sq8 (22.4 kB) or ivfpq (8.4 kB)"
    assert search(work, "dog", **asked, index="sq8").answers[0].results


def test_several_columns_are_joined_as_compress_joins_them(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    table = tmp_path / "docs.jsonl"
    write_jsonl(table, [{"name": text.split()[0], "details": text} for text in TEXTS[:20]])
    asked = {"collection": str(table), "model": str(tiny_model)}
    joined, own = (search(work, "dog", **asked, column=one) for one in (("name", "details"), ("details",)))
    assert {one["text"] for one in joined.answers[0].results} <= {f"{one.split()[0]} {one}" for one in TEXTS[:20]}
    assert {one["text"] for one in own.answers[0].results} <= set(TEXTS[:20])
    assert len(work.names("indexes")) == 2
    search(work, collection=str(table), model=str(tiny_model), column=("name", "details"), force=True)
    again = search(work, "dog", model=str(tiny_model))
    assert again == joined, "without a collection, that of the last index, read in the same way"


def test_each_column_of_ids_has_an_index_of_its_own(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    table = tmp_path / "docs.jsonl"
    write_jsonl(table, [{"_id": f"d{n}", "url": f"u{n}", "text": text} for n, text in enumerate(TEXTS[:20])])
    for column, expected in ((None, "d3"), ("url", "u3")):
        found = search(work, TEXTS[3], collection=str(table), model=str(tiny_model), id_column=column)
        assert found.answers[0].results[0]["id"] == expected
    assert len(work.names("indexes")) == 2
    # Without a collection, the last index is searched, and its ids are read in the same way.
    assert search(work, TEXTS[3], model=str(tiny_model)).answers[0].results[0]["id"] == "u3"
    assert search(work, TEXTS[3], model=str(tiny_model), passages=True).answers[0].results[0]["id"] == "u3#0"


def test_collections_of_similar_names_have_indexes_of_their_own(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    paths = [
        *(tmp_path / name for name in ("docs.2023.txt", "docs.2024.txt", "docs.2024.md", "docs.jsonl.gz")),
        *(tmp_path / "other" / name for name in ("docs.2023.txt", "v1.0", "v1.1")),
    ]
    (tmp_path / "other").mkdir()
    for place, path in enumerate(paths):
        text = TEXTS[place]
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(f"{json.dumps({'text': text})}\n".encode()))
        elif path.suffix in (".txt", ".md"):
            path.write_text(f"{text}\n", encoding="utf-8")
        else:
            path.mkdir()
            (path / "a.txt").write_text(text, encoding="utf-8")
    made = [search(work, collection=str(path), model=str(tiny_model)).index for path in paths]
    names = [reference.removeprefix("indexes/") for reference in made]
    assert [name for name in names if not re.search("-[0-9a-f]{8}-", name)] == [
        f"{stem}-tiny-model" for stem in ("docs.2023", "docs.2024", "docs", "v1.0", "v1.1")
    ]
    assert [name[:10] for name in names if re.search("-[0-9a-f]{8}-", name)] == ["docs.2024-", "docs.2023-"]
    finished = {name: work.get("indexes", name).manifest["finished"] for name in names}
    assert len(finished) == len(paths)
    for path, name, text in zip(paths, names, TEXTS, strict=False):
        again = search(work, "a dog", collection=str(path), model=str(tiny_model))
        assert (again.index, again.answers[0].results[0]["text"]) == (f"indexes/{name}", text)
    assert finished == {name: work.get("indexes", name).manifest["finished"] for name in names}


def test_models_of_the_same_name_have_indexes_of_their_own(work: WorkDirectory, tmp_path: Path) -> None:
    models = [make_tiny_model(tmp_path / version / "model", layers=1, seed=seed) for seed, version in enumerate("abc")]
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "docs.txt").write_text("\n".join(TEXTS[:9]), encoding="utf-8")
    made = {
        (folder, model): search(work, collection=str(tmp_path / folder / "docs.txt"), model=str(model)).index
        for folder in ("first", "second", "first")
        for model in models
    }
    forms = [re.sub("[0-9a-f]{8}", "X", reference) for reference in made.values()]
    assert forms == [
        *("indexes/docs-model", "indexes/docs-model-X", "indexes/docs-model-X"),
        *("indexes/docs-X-model", "indexes/docs-X-model-X", "indexes/docs-X-model-X"),
    ]
    assert len(set(made.values())) == len(work.names("indexes")) == 6


@pytest.fixture
def of_one_name(tmp_path: Path, tiny_model: Path) -> list[dict[str, str]]:
    """Options of two searches of different collections whose indexes would get the same name."""
    for folder, text in (("a", TEXTS[0]), ("b", TEXTS[1])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "docs.txt").write_text(f"{text}\n", encoding="utf-8")
    return [{"collection": str(tmp_path / folder / "docs.txt"), "model": str(tiny_model)} for folder in "ab"]


def own_answers(work: WorkDirectory, of_one_name: list[dict[str, str]]) -> bool:
    """Whether each of two searches has an index of its own, the first one that of the plain name."""
    found = [search(work.looking(), "a dog", **one) for one in of_one_name]
    assert [one.answers[0].results[0]["text"] for one in found] == TEXTS[:2]
    return found[0].index == "indexes/docs-tiny-model" != found[1].index


def test_an_unfinished_index_of_another_collection_is_kept(
    work: WorkDirectory, of_one_name: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = of_one_name
    with interrupted(stage, "build_index"):
        search(work, **first)
    search(work, **second)
    monkeypatch.setattr(stage._Search, "_spool", None)
    search(work, **first)
    assert own_answers(work, of_one_name)


def test_a_collection_is_searched_while_another_of_its_name_is_indexed(
    work: WorkDirectory, of_one_name: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def building(*given: Any) -> Any:
        monkeypatch.undo()
        search(work, **of_one_name[1])
        return stage.build_index(*given)

    monkeypatch.setattr(stage, "build_index", building)
    search(work, **of_one_name[0])
    assert own_answers(work, of_one_name)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("other_is", ["finished", "busy", "stopped"])
def test_two_searches_that_choose_one_name_at_once_do_not_replace_each_other(
    work: WorkDirectory, of_one_name: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch, other_is: str, force: bool
) -> None:
    """The other search takes the name after this one has chosen it; if `busy`, it holds the lock for long."""
    build = WorkDirectory.build

    def taken(*given: Any, **options: Any) -> Any:
        monkeypatch.undo()
        with interrupted(stage, "build_index") if other_is == "stopped" else nullcontext():
            search(work, **of_one_name[0])
        if other_is == "busy":
            raise BusyError("the other search holds the lock", "wait")
        return build(*given, **options)

    monkeypatch.setattr(WorkDirectory, "build", taken)
    search(work, **of_one_name[1], force=force)
    if other_is == "stopped":
        assert work.unfinished("indexes") == ["docs-tiny-model"]
        monkeypatch.setattr(stage._Search, "_spool", None)  # its vectors were kept
        search(work, **of_one_name[0])
    assert own_answers(work, of_one_name)


def test_an_index_of_another_collection_is_not_waited_for(
    work: WorkDirectory, of_one_name: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two searches choose one name; the first holds the lock until the second has an index of its own."""
    begun, answered = threading.Event(), threading.Event()
    first: list[Future[Result]] = []
    build, build_index = WorkDirectory.build, stage.build_index

    def building(*given: Any) -> Any:
        begun.set()
        answered.wait(600)
        return build_index(*given)

    with ThreadPoolExecutor(1) as pool:

        def taken(*given: Any, **options: Any) -> Any:
            monkeypatch.undo()
            monkeypatch.setattr(stage, "build_index", building)
            first.append(pool.submit(search, work, **of_one_name[0]))
            assert begun.wait(600)
            monkeypatch.undo()
            return build(*given, **options)

        monkeypatch.setattr(WorkDirectory, "build", taken)
        try:
            search(work.waiting(1200), **of_one_name[1])
            assert not first[0].done()
        finally:
            answered.set()
    assert own_answers(work, of_one_name)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("finished", [False, True])
def test_two_searches_with_models_of_one_name_at_once_have_an_index_each(
    work: WorkDirectory,
    collection: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    finished: bool,
    force: bool,
) -> None:
    models = [make_tiny_model(tmp_path / folder / "model", seed=seed) for seed, folder in enumerate("ab")]
    build = WorkDirectory.build

    def taken(*given: Any, **options: Any) -> Any:
        monkeypatch.undo()
        with nullcontext() if finished else interrupted(stage, "build_index"):
            search(work, collection=str(collection), model=str(models[0]))
        return build(*given, **options)

    monkeypatch.setattr(WorkDirectory, "build", taken)
    own = search(work, collection=str(collection), model=str(models[1]), force=force)
    if not finished:
        monkeypatch.setattr(stage._Search, "_spool", None)  # the vectors of the other one were kept
    other = search(work, collection=str(collection), model=str(models[0]))
    assert own.index != other.index
    assert len(work.names("indexes")) == 2


def test_the_same_index_is_waited_for(work: WorkDirectory, collection: Path, tiny_model: Path) -> None:
    asked = {"collection": str(collection), "model": str(tiny_model)}
    name = search(work, **asked).index
    lock = work.path / "indexes" / f".{name.removeprefix('indexes/')}.lock"
    with locked(lock, name), pytest.raises(BusyError) as caught:
        search(work, **asked)
    assert "use `wait` 30m" in caught.value.alternatives
    with ThreadPoolExecutor(1) as pool:
        with locked(lock, name):
            found = pool.submit(COMMAND.run, Params(device="cpu", wait="10m", **asked), work, Listener())  # type: ignore[arg-type]
            time.sleep(2.5)
            assert not found.done()
        assert found.result(timeout=600).index == name


def test_an_index_of_other_options_is_not_replaced_and_no_name_is_advised(
    work: WorkDirectory, collection: Path, tiny_model: Path
) -> None:
    search(work, collection=str(collection), model=str(tiny_model))
    with pytest.raises(UsageError, match="already exists with different options") as caught:
        search(work, collection=str(collection), model=str(tiny_model), seed=1)
    assert caught.value.hint == "use `force` to replace it"


def test_the_answers_are_those_of_exact_search(work: WorkDirectory, collection: Path, tiny_model: Path) -> None:
    found = search(work, *QUERIES, collection=str(collection), model=str(tiny_model), top=5)
    scores = vectors(tiny_model, list(QUERIES)) @ vectors(tiny_model, TEXTS).T
    assert (found.documents, found.model, found.compare) == (700, "tiny-model", None)
    for query, answer, row in zip(QUERIES, found.answers, scores, strict=True):
        assert answer.query == query
        assert [one["rank"] for one in answer.results] == [1, 2, 3, 4, 5]
        np.testing.assert_allclose([one["score"] for one in answer.results], np.sort(row)[::-1][:5], atol=1e-5)
        for one in answer.results:
            assert one["text"] == TEXTS[int(one["id"][1:])]
            assert row[int(one["id"][1:])] == pytest.approx(one["score"], abs=1e-5)
    assert found.answers[0].results[0]["id"] == "d3"


def test_the_index_is_built_once(
    work: WorkDirectory, collection: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    original = embedder_sources.CachingEmbedder.stream

    def stream(self: embedder_sources.CachingEmbedder, *given: object) -> object:
        encoded.append(1)
        return original(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(embedder_sources.CachingEmbedder, "stream", stream)
    first = search(work, QUERIES[0], collection=str(collection), model=str(tiny_model))
    made = work.get("indexes")
    assert made.reference == first.index == "indexes/docs-tiny-model"
    assert set(made.manifest["files"]) == {INDEX, "texts/texts.jsonl", "texts/starts.npy"}
    # Other queries, another number of results, and no collection: the same index.
    again = search(work, QUERIES[1], model=str(tiny_model), top=3)
    assert (again.index, len(encoded)) == (first.index, 1)
    assert work.get("indexes").manifest["finished"] == made.manifest["finished"]
    with collection.open("a", encoding="utf-8") as stream_:
        stream_.write(json.dumps({"_id": "new", "text": QUERIES[1]}) + "\n")
    changed = search(work, QUERIES[1], model=str(tiny_model))
    assert (changed.documents, len(encoded)) == (701, 2)
    assert changed.answers[0].results[0]["id"] == "new"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_index_finds_the_document_itself(
    work: WorkDirectory, collection: Path, tiny_model: Path, kind: str
) -> None:
    asked: dict[str, object] = {"collection": str(collection), "model": str(tiny_model), "index": kind}
    asked |= {"nprobe": 1024} if kind in CELLS else {}
    found = search(work, TEXTS[3], **asked)
    again = search(work, TEXTS[3], **asked)
    assert "d3" in [one["id"] for one in found.answers[0].results]
    assert found == again


def test_two_models_side_by_side(
    work: WorkDirectory, collection: Path, tiny_model: Path, other: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = search(work, *QUERIES, collection=str(collection), model=str(tiny_model), compare=str(other), top=4)
    assert found.compare == "other"
    for answer in found.answers:
        theirs = {one["id"]: one["rank"] for one in answer.compared}
        assert [one["other_rank"] for one in answer.results] == [theirs.get(one["id"]) for one in answer.results]
        ours = {one["id"]: one["rank"] for one in answer.results}
        assert [one["other_rank"] for one in answer.compared] == [ours.get(one["id"]) for one in answer.compared]
    assert found.answers[0].results[0]["other_rank"] == 1
    assert len(work.names("indexes")) == 2
    line = ["search", *QUERIES, "--model", str(tiny_model), "--compare", str(other), "--top", "4"]
    assert _run([*line, "--work", str(work.path)]) == 0
    out = capsys.readouterr().out
    assert out.count("results are found by both models") == len(QUERIES)
    assert out.count("Searched the ") == 1, "once for all queries"
    assert "d3: " in out
    assert QUERIES[0] in " ".join(out.split())


def test_on_a_narrow_terminal_each_of_two_models_has_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = [{"rank": 1, "id": f"{model}1", "text": "a " * 50, "score": 0.5, "other_rank": None} for model in "ab"]
    answers = [Answer("a query", results[:1], results[1:])]
    found = Result("docs", 9, "first", "second", "indexes/docs-first", answers)
    for columns, tables in ((60, 2), (99, 2), (100, 1)):
        monkeypatch.setattr(render, "stdout", partial(render.Console, width=columns))
        show(found, Call(None, Path("work")))
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        heads = [line for line in lines if line[:1] == ["rank"]]
        sides = [[model, "other", "rank"] for model in ("first", "second")]
        assert heads == ([["rank", *side] for side in sides] if tables == 2 else [["rank", *sides[0], *sides[1]]])
        assert lines.count(["a", "query"]) == 1
        assert len([line for line in lines if "a1:" in line or "b1:" in line]) == tables


def test_a_repeated_query_is_answered_once(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path
) -> None:
    log, notes = tmp_path / "log.txt", Listener()
    log.write_text(f"{QUERIES[0]}\n{QUERIES[1]}\n{QUERIES[0]}\n", encoding="utf-8")
    params = Params(query=(QUERIES[1],), queries=log, collection=str(collection), model=str(tiny_model))
    found = run(params, work, notes)
    assert [answer.query for answer in found.answers] == [QUERIES[1], QUERIES[0]]
    assert "search: left out 2 repeated queries" in notes.notes


def test_an_id_that_is_a_path_is_shown_without_its_folders() -> None:
    assert _shown("/home/me/docs/guide.md#2") == "guide.md#2"
    assert _shown("guide/passports.md#2") == "guide/passports.md#2"


def test_queries_of_a_file_and_json(
    work: WorkDirectory, collection: Path, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").write_text(f"{QUERIES[0]}\n\n{QUERIES[1]}\n", encoding="utf-8")
    line = ["search", "--queries", str(tmp_path / "log.txt"), "--collection", str(collection), "--json"]
    assert _run([*line, "--model", str(tiny_model), "--work", str(work.path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [answer["query"] for answer in document["answers"]] == list(QUERIES)
    assert document["answers"][0]["results"][0]["id"] == "d3"
    assert len(document["answers"][0]["results"]) == 10
    (tmp_path / "log.csv").write_text(f"id,query\n1,{QUERIES[1]}\n", encoding="utf-8")
    found = search(work, queries=tmp_path / "log.csv", collection=str(collection), model=str(tiny_model))
    assert [asdict(answer) for answer in found.answers] == document["answers"][1:]
    (tmp_path / "log.csv").write_text("id,words\n1,a dog\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no column of queries"):
        search(work, queries=tmp_path / "log.csv", collection=str(collection), model=str(tiny_model))


@pytest.mark.parametrize(("name", "content"), [("log.txt", "\n \n"), ("log.jsonl", '{"query": null}\n')])
def test_a_file_without_queries_is_an_error(work: WorkDirectory, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=f"{name} holds no queries"):
        run(Params(queries=tmp_path / name), work)


def test_without_a_query_the_index_is_built(
    work: WorkDirectory, collection: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["search", "--collection", str(collection), "--model", str(tiny_model), "--work", str(work.path)]
    assert _run(line) == 0
    assert "indexes/docs-tiny-model" in capsys.readouterr().out
    made = work.get("indexes")
    assert _run([*made.manifest["line"], "--work", str(work.path)]) == 0
    assert work.get("indexes").manifest["finished"] == made.manifest["finished"]
    assert _run(["status", "--work", str(work.path)]) == 0
    assert "fresh" in capsys.readouterr().out


def test_the_newest_documents_are_the_default(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingArtifactError, match="no index and no documents"):
        search(work, "a dog", model=str(tiny_model))
    documents = make_documents(work, TEXTS[:30], TEXTS[30:35])
    found = search(work, TEXTS[7], model=str(tiny_model))
    assert (found.collection, found.documents) == ("documents/main", 30)
    assert found.answers[0].results[0]["id"] == "p7"
    assert len(found.answers[0].results) == 10
    assert work.get("indexes").inputs[documents.reference] == documents.digest
    assert search(work, TEXTS[7], model=str(tiny_model), collection="documents/main") == found
    (tmp_path / "lines.txt").write_text("\n".join(TEXTS[:5]), encoding="utf-8")
    assert search(work, model=str(tiny_model), collection=str(tmp_path / "lines.txt")).documents == 5
    assert search(work, TEXTS[7], model=str(tiny_model)).documents == 5, "the newest index"
    make_documents(work, TEXTS[:9], TEXTS[:2], name="later")
    assert search(work, TEXTS[7], model=str(tiny_model)).collection == "documents/later"


def test_a_collection_that_cannot_be_indexed(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{\n")
    with pytest.raises(InputError, match="JSON"):
        search(work, "a dog", model=str(tiny_model), collection=str(tmp_path / "bad.jsonl"))
    os.mkfifo(tmp_path / "pipe")
    for name in ("-", str(tmp_path / "pipe")):
        with pytest.raises(InputError, match="can be read only once"):
            search(work, "a dog", model=str(tiny_model), collection=name)
    make_documents(work, TEXTS[:9], TEXTS[:2])
    with pytest.raises(MissingArtifactError, match="no documents named 'mian'") as raised:
        search(work, "a dog", model=str(tiny_model), collection="documents/mian")
    assert raised.value.hint == "did you mean main?"
    assert work.names("indexes") == []


def test_a_collection_too_small_for_an_index_can_be_searched_with_other_settings(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    (tmp_path / "few.txt").write_text("\n".join(TEXTS[:20]), encoding="utf-8")
    asked = {"collection": str(tmp_path / "few.txt"), "model": str(tiny_model), "index": "pq"}
    for settings in ({}, {"segments": 4}):
        with pytest.raises(UsageError, match="too small to train pq"):
            search(work, "a dog", **asked, **settings)
    assert work.unfinished("indexes") == []


def test_an_interrupted_index_goes_on_with_the_vectors(
    work: WorkDirectory, collection: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"collection": str(collection), "model": str(tiny_model)}
    with interrupted(stage, "build_index"):
        search(work, QUERIES[0], **asked)
    with monkeypatch.context() as patched:
        patched.setattr(stage._Search, "_spool", None)
        patched.setattr(stage._Search, "_read", None)
        found = search(work, QUERIES[0], **asked)
    assert found.answers == search(WorkDirectory(work.path / "other"), QUERIES[0], **asked).answers


def test_empty_texts_are_left_out(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, blank = tmp_path / "lines.txt", tmp_path / "blank.txt"
    lines.write_text(f"\n{TEXTS[0]}\n \n{TEXTS[1]}\n", encoding="utf-8")
    blank.write_text("\n \n", encoding="utf-8")
    (answer,) = search(work, TEXTS[1], model=str(tiny_model), collection=str(lines)).answers
    assert [one["id"] for one in answer.results] == ["3", "1"]
    with pytest.raises(InputError, match="has no documents with text"):
        search(work, "a dog", model=str(tiny_model), collection=str(blank))
    told = Listener()
    run(Params(collection=str(lines), model=str(tiny_model), force=True), work, told)
    assert "left out 2 empty texts" in told.notes
    lines.write_text(f"{TEXTS[0]}\n\n", encoding="utf-8")
    assert (
        _run(["search", "a dog", "--model", str(tiny_model), "--collection", str(lines), "--work", str(work.path)]) == 0
    )
    assert f"Searched the text of {lines}." in capsys.readouterr().out


def test_queries_of_the_student_search_the_vectors_of_the_teacher(
    work: WorkDirectory, collection: Path, tiny_model: Path, other: Path, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"collection": str(collection), "compare": str(other), "keep_index": True, "force": True}
    found = search(work, *QUERIES, model=str(tiny_model), **asked)
    assert found.model == f"{tiny_model.name}, documents by {other.name}"
    assert [f"indexes/{name}" for name in work.names("indexes")] == [found.index]
    documents = vectors(other, TEXTS)
    for queries, results in (
        (vectors(tiny_model, list(QUERIES)), [answer.results for answer in found.answers]),
        (vectors(other, list(QUERIES)), [answer.compared for answer in found.answers]),
    ):
        for row, one in zip(queries @ documents.T, results, strict=True):
            assert [result["score"] for result in one] == pytest.approx(np.sort(row)[::-1][:10], abs=1e-5)
    narrow = make_tiny_model(tmp_path / "narrow", width=16)
    with pytest.raises(InputError, match="32 dimensions and narrow 16: they cannot be compared"):
        search(work, "a dog", model=str(narrow), **asked)
    with pytest.raises(UsageError, match="`keep_index` needs `compare`"):
        Params(keep_index=True).check()


def test_a_query_that_names_a_file_is_warned_of(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    path, told = tmp_path / "docs.jsonl", Listener()
    write_jsonl(path, ({"text": text} for text in TEXTS))
    run(Params(query=(str(path), TEXTS[0]), collection=str(path), model=str(tiny_model)), work, told)
    assert told.warnings == [f"{path} is searched as a text; name documents with `collection`"]


@pytest.mark.parametrize("asked", [{"column": ("title",)}, {"passages": True}, {"skip_bad": True}])
def test_held_out_passages_are_not_cut_again(work: WorkDirectory, tiny_model: Path, asked: dict[str, Any]) -> None:
    make_documents(work, TEXTS[:20], QUERIES)
    with pytest.raises(InputError, match="documents/main is made of passages"):
        search(work, model=str(tiny_model), **asked)


def test_documents_that_share_an_id_are_told_apart(work: WorkDirectory, tiny_model: Path, tmp_path: Path) -> None:
    rows = [{"_id": "a", "text": TEXTS[0]}, {"_id": "b", "text": TEXTS[1]}, {"_id": "a", "text": TEXTS[2]}]
    write_jsonl(tmp_path / "same.jsonl", rows)
    told = Listener()
    asked = Params(
        query=(TEXTS[2],), collection=str(tmp_path / "same.jsonl"), model=str(tiny_model), compare=str(tiny_model)
    )
    found = run(asked, work, told)
    assert found.answers[0].results[0]["id"] == "a~2"
    assert sorted(result["id"] for result in found.answers[0].results) == ["a", "a~2", "b"]
    assert all(result["rank"] == result["other_rank"] for result in found.answers[0].results)
    assert told.warnings == [
        f"{tmp_path / 'same.jsonl'}: 1 text with the id of an earlier one; a number is added to tell them apart"
    ]


def test_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        Params(queries=tmp_path / "none").check()
    with pytest.raises(UsageError, match="is a folder"):
        Params(queries=tmp_path).check()
    with pytest.raises(UsageError) as raised:
        Params(query=("",)).check()
    assert raised.value.faults == ("`query` must not be empty",)
    with pytest.raises(UsageError, match="`query` must not be blank"):
        Params(query=(" ",)).check()
    with pytest.raises(UsageError) as raised:
        Params(index="hnsw", nprobe=20, links=8, ef_search=10).check()
    assert raised.value.faults == ("`nprobe` is for `index` ivf and ivfpq, not hnsw",)
    with pytest.raises(UsageError, match="`query` must be UTF-8 text"):
        Params(query=(os.fsdecode(b"caf\xe9"),)).check()  # as the command line gives bytes of Latin-1
    with pytest.raises(UsageError, match="`index` tree"):
        Params(index="tree").check()


def test_a_changed_index_is_refused(work: WorkDirectory, collection: Path, tiny_model: Path) -> None:
    search(work, QUERIES[0], collection=str(collection), model=str(tiny_model))
    path = work.get("indexes").path / INDEX
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match=r"index.faiss was changed") as raised:
        search(work, QUERIES[0], collection=str(collection), model=str(tiny_model))
    assert "sentcompress search --collection" in str(raised.value.hint)
    assert search(work, QUERIES[0], collection=str(collection), model=str(tiny_model), force=True).answers


def test_a_folder_is_searched_without_the_files_that_cannot_be_read(
    work: WorkDirectory, tiny_model: Path, tmp_path: Path
) -> None:
    folder = folder_with_unreadable(tmp_path / "docs", TEXTS[0])
    (folder / "c.pdf").touch()
    with pytest.raises(InputError, match="not UTF-8"):
        search(work, TEXTS[0], collection=str(folder), model=str(tiny_model))
    told = Listener()
    asked = Params(query=(TEXTS[0],), collection=str(folder), model=str(tiny_model), skip_bad=True)
    assert [result["id"] for result in run(asked, work, told).answers[0].results] == ["a.txt#0"]
    assert told.notes[0] == f"{folder}: files that are not read: 1 .pdf, 1 empty; convert .pdf with pdftotext first"
    assert any("skipped 1 unreadable line or file" in warning for warning in told.warnings)
    # Without a collection, the last one is searched, read in the same way.
    assert [result["id"] for result in search(work, TEXTS[0], model=str(tiny_model)).answers[0].results] == ["a.txt#0"]
