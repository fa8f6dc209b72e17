from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from sentcompress.corpora.inputs import check_columns, open_inputs
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError
from sentcompress.progress import SILENT
from sentcompress.store import WorkDirectory


def texts_of(names: list[str], tmp_path: Path, **keys: Any) -> list[tuple[str, ...]]:
    with open_inputs(names, ReadOptions(**keys), None, None, WorkDirectory(tmp_path), SILENT) as inputs:
        return [record.texts for given in inputs for record in given.records(BadRecords())]


def test_several_files_in_order(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("one\n")
    (tmp_path / "a.txt").write_text("two\n")
    names = [str(tmp_path / "b.txt"), str(tmp_path / "a.txt")]
    assert texts_of(names, tmp_path) == [("one",), ("two",)]
    with open_inputs(names, ReadOptions(), None, None, WorkDirectory(tmp_path), SILENT) as inputs:
        assert [given.origin for given in inputs] == ["b.txt", "a.txt"]
        assert inputs[0].reference == f"file:{tmp_path / 'b.txt'}"
        assert inputs[0].digest != inputs[1].digest


def test_files_of_the_same_name_have_different_origins(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
        (tmp_path / folder / "docs").mkdir()
        (tmp_path / folder / "docs" / "a.txt").write_text(folder)
    names = [str(tmp_path / folder / "a.txt") for folder in ("x", "y")]
    names += [str(tmp_path / folder / "docs") for folder in ("x", "y")]
    with open_inputs(names, ReadOptions(), None, None, WorkDirectory(tmp_path), SILENT) as inputs:
        assert [given.origin for given in inputs] == names
    with open_inputs([names[-1]], ReadOptions(), None, None, WorkDirectory(tmp_path), SILENT) as inputs:
        assert inputs[0].origin == "docs"


def test_standard_input_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(b'{"text": "a"}\n{"text": "b"}\n'), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    with open_inputs(["-"], ReadOptions(), None, None, WorkDirectory(tmp_path / "work"), SILENT) as inputs:
        for _ in range(2):
            assert [record.texts for record in inputs[0].records(BadRecords())] == [("a",), ("b",)]
        assert (inputs[0].reference, inputs[0].origin) == ("stdin:-", "stdin")
        assert list((tmp_path / "work").iterdir()) == []


def test_a_pipe_is_copied(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo\n")
    os.close(writing)
    try:
        assert texts_of([f"/dev/fd/{reading}"], tmp_path) == [("one",), ("two",)]
    finally:
        os.close(reading)


def test_a_missing_file_is_not_a_data_set(tmp_path: Path) -> None:
    for name in ("nothing.jsonl", "./nothing", "a/b/c", "nothing.gz"):
        with pytest.raises(InputError, match="no such file"):
            texts_of([name], tmp_path)


class FakeHub:
    """What the hub's client and `datasets` give for a tiny NLI set with label names."""

    features: ClassVar[dict[str, object]] = {
        "premise": object(),
        "label": SimpleNamespace(names=["entailment", "neutral", "contradiction"]),
    }

    def __iter__(self) -> Any:
        return iter([{"premise": "p", "hypothesis": "h", "label": 2}, {"premise": "q", "hypothesis": "i", "label": -1}])


def test_a_data_set_of_the_hub_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    import huggingface_hub

    asked: dict[str, Any] = {}

    def load(name: str, config: str | None, **keys: Any) -> FakeHub:
        asked.update(keys, name=name, config=config)
        return FakeHub()

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: SimpleNamespace(sha="abc"))
    with open_inputs(["owner/nli"], ReadOptions(split="dev"), "cfg", None, WorkDirectory(tmp_path), SILENT) as inputs:
        records = list(inputs[0].records(BadRecords()))
        assert inputs[0].reference == "hub:owner/nli:cfg:dev"
        assert inputs[0].digest == "abc"
    assert [record.relation.name for record in records] == ["CONTRADICTION", "NO_GOLD"]
    assert asked == {"name": "owner/nli", "config": "cfg", "split": "dev", "revision": "abc", "streaming": True}
    with open_inputs(
        ["owner/glue:qqp", "hub:own:x"], ReadOptions(), "cfg", None, WorkDirectory(tmp_path), SILENT
    ) as inputs:
        assert [given.reference for given in inputs] == ["hub:owner/glue:qqp:train", "hub:own:x:train"]
        list(inputs[0].records(BadRecords()))
    assert (asked["name"], asked["config"]) == ("owner/glue", "qqp")


def test_without_a_network_the_error_names_alternatives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", refuse)
    with pytest.raises(InputError, match="no file or folder owner/nli here, and the hub cannot be reached") as caught:
        texts_of(["owner/nli"], tmp_path)
    assert "give a folder, or a file" in str(caught.value.hint)
    monkeypatch.undo()
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"no file or folder owner/nli here, and the hub is disabled \(offline\)$"):
        texts_of(["owner/nli"], tmp_path)


def test_documents_of_the_hub_and_of_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    datasets = pytest.importorskip("datasets")
    rows = [{"id": "a", "Title": "T", "Text": "Hub text."}, {"id": "b", "Title": None, "Text": "More."}]
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: rows)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: SimpleNamespace(sha="abc"))
    pipe = tmp_path / "stdin"
    pipe.write_bytes(b"A first line.\nA second one.\n")
    options = ReadOptions(joined=True)
    with (
        pipe.open("rb") as stream,
        monkeypatch.context() as patch,
    ):
        patch.setattr("sys.stdin", SimpleNamespace(buffer=stream, isatty=lambda: False))
        work = WorkDirectory(tmp_path / "work")
        with open_inputs(["owner/news", "-"], options, None, None, work, SILENT) as inputs:
            # Twice: the length of the texts is measured before they are read.
            for _ in range(2):
                found = [document for given in inputs for document in given.documents(BadRecords())]
    assert [document.text for document in found] == ["T Hub text.", "More.", "A first line.", "A second one."]
    assert [document.id for document in found[:2]] == ["a", "b"]


def opened(names: list[Path], tmp_path: Path, options: ReadOptions, config: str | None = None) -> None:
    with open_inputs([str(name) for name in names], options, config, None, WorkDirectory(tmp_path / "work"), SILENT):
        pass


def test_options_that_no_input_has_use_for_are_errors(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("one\n")
    (tmp_path / "a.jsonl").write_text('{"text": "x", "split": "test"}\n')
    docs, table = tmp_path / "docs", tmp_path / "a.jsonl"
    with pytest.raises(InputError, match="not a data set of the hub"):
        opened([docs, table], tmp_path, ReadOptions(), "plain")
    for options in (ReadOptions(columns=("text",)), ReadOptions(id_column="id")):
        with pytest.raises(InputError, match="no table in"):
            opened([docs], tmp_path, options)
        opened([docs, table], tmp_path, options)
    (tmp_path / "page.html").write_text("<p>one</p>")
    for names in ([table], [tmp_path / "page.html", table]):
        with pytest.raises(InputError, match="`text_as`: there is no text file in"):
            opened(names, tmp_path, ReadOptions(text_as="line"))
    opened([docs, table], tmp_path, ReadOptions(text_as="line"))
    opened([table], tmp_path, ReadOptions("text", text_as="line"))
    opened([docs, table], tmp_path, ReadOptions(split="test"))
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"sentence1": "x", "sentence2": "y", "split": "test"}\n')
    opened([pairs, table], tmp_path, ReadOptions(split="test", documents=True))
    with pytest.raises(InputError, match="the column split of documents is ignored"):
        opened([table], tmp_path, ReadOptions(split="test", documents=True))
    for names, options in (
        ([docs], ReadOptions(split="test")),
        ([table], ReadOptions(split="test", columns=("text",))),
    ):
        with pytest.raises(InputError, match="has no rows with a split"):
            opened(names, tmp_path, options)


def test_columns_are_checked_in_every_table(tmp_path: Path) -> None:
    work, folder = WorkDirectory(tmp_path / "work"), tmp_path / "folder"
    folder.mkdir()
    (folder / "a.csv").write_text("id,body\n1,one\n")
    (folder / "b.jsonl").write_text('{"id": "1", "body": "one"}\n')
    (folder / "notes.txt").write_text("a text has no columns\n")
    check_columns([str(folder)], ReadOptions(columns=("body",), id_column="id"), work)
    (folder / "c.tsv").write_text("id\ttext\n1\tone\n")
    wanted = ReadOptions(columns=("body",))
    with pytest.raises(InputError, match=r"c\.tsv has no column 'body'"):
        check_columns([str(folder)], wanted, work)
    check_columns([str(folder)], wanted, work, skip_bad=True)
    with pytest.raises(InputError, match="only tables have columns"):
        check_columns([str(folder / "notes.txt")], wanted, work)
    check_columns(["owner/data"], wanted, work)
