from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.document import Document
from sentcompress.corpora.document_files import (
    find_document_files,
    folder_records,
    read_documents,
    read_folder,
    usual_unit,
)
from sentcompress.corpora.readers import ReadOptions
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError

JOINED = ReadOptions(joined=True)


def read(path: Path, options: ReadOptions = JOINED, bad: BadRecords | None = None) -> list[Document]:
    return list(read_documents(path, options, bad or BadRecords()))


def lines_of(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"_id": "d1", "title": "A title", "text": "Some text."}, ("d1", "A title", "A title Some text.")),
        ({"id": 7, "headline": " Up ", "body": "Text."}, ("7", "Up", "Up Text.")),
        ({"title": None, "content": "Text."}, ("{file}:1", "", "Text.")),
        ({"doc_id": True, "abstract": "Text."}, ("{file}:1", "", "Text.")),
        ({"doc_id": 7.0, "abstract": "Text."}, ("7", "", "Text.")),
        ({"doc_id": float("nan"), "abstract": "Text."}, ("{file}:1", "", "Text.")),
    ],
)
def test_the_columns_of_a_document(tmp_path: Path, row: object, expected: tuple[str, str, str]) -> None:
    path = lines_of(tmp_path / "a.jsonl", row)
    (found,) = read(path)
    assert (found.id, found.title, found.text) == (expected[0].format(file=path), *expected[1:])


def test_a_row_may_lack_the_title_and_a_wrong_one_is_a_bad_line(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl", {"text": "One."}, {"text": "Two.", "title": "T"}, {"text": "3", "title": [1]})
    with pytest.raises(InputError, match="line 3: 'title' is a list, not text"):
        read(path)
    bad = BadRecords(skip=True)
    assert [found.text for found in read(path, bad=bad)] == ["One.", "T Two."]
    assert bad.count == 1


def test_hidden_files_and_the_work_directory_are_not_read(tmp_path: Path) -> None:
    for name in ("a.md", "guide/b.txt", ".git/c.txt", ".d.md", "work/exports/e.md", "guide/work/f.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text", encoding="utf-8")
    found = find_document_files(tmp_path, tmp_path / "guide" / ".." / "work")
    assert [str(path.relative_to(tmp_path)) for path in found.files] == ["a.md", "guide/b.txt", "guide/work/f.md"]


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.md").write_text("text", encoding="utf-8")
    listed = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "closed":  # the tests may run as root, who can list everything
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError):
        find_document_files(tmp_path)


@pytest.mark.parametrize(
    ("skip", "line", "file"),
    [
        (None, "fix the line", "OLD > NEW"),
        (False, "fix the line; or skip such lines with `skip_bad`", "OLD > NEW; or skip such files with `skip_bad`"),
    ],
)
def test_skipping_is_advised_where_it_is_possible(tmp_path: Path, skip: bool | None, line: str, file: str) -> None:
    for name, content, hint in (("a.jsonl", b'{"text": "a"}\n{\n', line), ("b.txt", b"\x00\x01\x02" * 9, file)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as caught:
            list(read_folder(find_document_files(tmp_path), tmp_path, JOINED, BadRecords(skip)))
        assert str(caught.value.hint).endswith(hint)
        (tmp_path / name).unlink()


def test_named_columns_are_joined_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('lead,title,rest\nA lead.,The title,"The\nrest."\n')
    for columns, title, text in (
        (("title", "lead", "rest"), "The title", "The title A lead. The\nrest."),
        (("rest", "title"), "", "The\nrest. The title"),
        (("title",), "", "The title"),
    ):
        (found,) = read(path, ReadOptions(columns=columns, joined=True))
        assert (found.title, found.text) == (title, text)


def test_labelled_pairs_are_a_document_for_each_sentence(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "nli.jsonl", {"premise": "One.", "hypothesis": "Two.", "label": 0})
    assert [found.text for found in read(path)] == ["One.", "Two."]


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("A line.\nAnother line.\n", "line"),
        ("A line.\n\nAnother line.\n", "line"),
        ("One doc.\nTwo docs.\n\nThree docs.\nFour docs.\n", "line"),
        ("A paragraph that goes on\nin the next line.\n\nAnother one that\ndoes so too.\n", "paragraph"),
        ("a title of five words\nanother title\na third\n", "line"),
    ],
)
def test_what_is_a_document_in_a_text_file(tmp_path: Path, text: str, unit: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    assert usual_unit(as_source(path)) == unit


def test_the_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.txt", "sub/a.md", "c.jsonl", ".git/x.txt", "d.pdf", "settings.json", "Makefile"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# A heading\n\nText.\n" if name.endswith("md") else "Line one.\nLine two.\n")
    lines_of(tmp_path / "c.jsonl", {"title": "T", "text": "Row."}, {"premise": "no", "text": "Other."})
    found = find_document_files(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in found.files] == ["b.txt", "c.jsonl", "sub/a.md"]
    assert found.others == {".pdf": 1, ".json": 1, "without extension": 1}
    texts = [record.texts for record in folder_records(found, tmp_path, JOINED, BadRecords())]
    assert texts == [("Line one.\nLine two.",), ("T Row.",), ("Other.",), ("A heading Text.",)]


def test_half_a_character_is_a_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n{"text": "bad \\ud800"}\n')
    with pytest.raises(InputError, match="lone surrogate"):
        read(path)
    assert len(read(path, bad=BadRecords(skip=True))) == 1
