"""Texts by name: files, and artifacts of a work directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from search_documents import make_documents

from sentcompress.corpora.named_texts import find_named_texts
from sentcompress.errors import InputError, MissingArtifactError
from sentcompress.store import WorkDirectory


def test_documents_and_files_are_read_together(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path / "work")
    documents = make_documents(work, ["one passage", "another"], ["a query"])
    (tmp_path / "lines.txt").write_text("from a file\n", encoding="utf-8")
    found = find_named_texts(work, [str(tmp_path / "lines.txt"), "documents/main"])
    assert sorted(found.read()) == ["another", "from a file", "one passage"]
    assert found.inputs[documents.reference] == documents.digest
    assert len(found.inputs) == 2
    assert list(found.read()) == list(found.read())


def test_a_file_below_a_folder_of_that_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "mine.txt").write_text("a line\n", encoding="utf-8")
    assert list(find_named_texts(WorkDirectory("work"), ["documents/mine.txt"]).read()) == ["a line"]


def test_what_is_not_there(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path)
    with pytest.raises(MissingArtifactError, match="no documents"):
        find_named_texts(work, ["documents/none"])
    with pytest.raises(InputError, match="no such file"):
        find_named_texts(work, [str(tmp_path / "none.txt")])
