"""Texts with ids: which rows have a text, and ids that tell all texts apart."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from beir import write_jsonl
from listening import Listener

from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.document_files import find_document_files
from sentcompress.corpora.identified_texts import CHUNK, Cut, DistinctIds, identified_texts, texts_of_folder
from sentcompress.corpora.readers import ReadOptions
from sentcompress.errors import InputError
from sentcompress.passages.cutting import passages_of

URL = ReadOptions(id_column="url")


def written(path: Path, *rows: object) -> Path:
    return write_jsonl(path, rows)


def read(path: Path, column: str | None = None) -> list[tuple[str, str]]:
    return list(identified_texts(as_source(path), ReadOptions(columns=(column,) if column else ())).read())


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a~2", "a", "a"], ["a~2", "a", "a~2~2"]),
        (["a", "a", "a~1"], ["a", "a~1~1", "a~1"]),
        (["a", *map(str, range(CHUNK)), "a"], ["a", *map(str, range(CHUNK)), f"a~{CHUNK + 1}"]),
    ],
)
def test_no_two_ids_are_equal(ids: list[str], expected: list[str]) -> None:
    texts = DistinctIds(lambda _: ((one, "x") for one in ids))
    for _ in range(2):
        assert [one for one, _ in texts()] == expected
        assert texts.renamed == 1


def test_a_row_without_the_text_is_refused_and_null_is_an_empty_text(tmp_path: Path) -> None:
    rows = {"id": "a", "text": "x"}, {"id": "b", "text": None}, {"id": "c", "title": "t", "text": ""}
    assert read(written(tmp_path / "a.jsonl", *rows)) == [("a", "x"), ("b", ""), ("c", "t")]
    pq.write_table(pa.table({"id": [1, 2], "text": ["x", None]}), tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet") == [("1", "x"), ("2", "")]
    lacking = written(tmp_path / "b.jsonl", *rows, {"id": "d", "title": "t"})
    for column in (None, "text"):
        with pytest.raises(InputError, match="line 4: no 'text'"):
            read(lacking, column)


def test_the_corpus_of_a_collection_has_a_text_in_every_row_and_no_other_column(tmp_path: Path) -> None:
    written(tmp_path / "corpus.jsonl", {"_id": "1", "text": None}, {"_id": "2", "title": "t"})
    written(tmp_path / "queries.jsonl", {"_id": "1", "text": "x"})
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    found = find_document_files(tmp_path, tmp_path / "work")
    assert found.collection
    with pytest.raises(InputError, match="line 2: no _id and text"):
        list(texts_of_folder(tmp_path, found).read())
    with pytest.raises(InputError, match="is a collection"):
        texts_of_folder(tmp_path, found, ReadOptions(columns=("title",)))


def test_lines_that_cannot_be_read_are_skipped_and_told_if_asked(tmp_path: Path) -> None:
    table = tmp_path / "a.jsonl"
    table.write_text('{"text": 1}\n{"text": "x"}\n{bad\n{"text": "\\ud800"}\n{"text": "y"}\n')
    with pytest.raises(InputError, match="line 1: 'text' is a number") as refused:
        identified_texts(as_source(table), skip_bad=False).read().__next__()
    assert "skip_bad" in str(refused.value.hint)
    texts = identified_texts(as_source(table), skip_bad=True)
    told = Listener()
    for _ in range(2):
        assert list(texts.read()) == [("0", "x"), ("1", "y")]
    texts.tell(told)
    assert told.warnings == [
        f"skipped 3 unreadable lines or files; the first: {table}, line 1: 'text' is a number, not text"
    ]

    (tmp_path / "a.txt").write_bytes(b"x\n\xff\ny\n")
    lines = identified_texts(as_source(tmp_path / "a.txt"), skip_bad=True)
    assert list(lines.read()) == [("0", "x"), ("2", "y")]


def test_a_table_without_a_row_that_can_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": \n')
    with pytest.raises(InputError, match="no row that can be read"):
        identified_texts(as_source(tmp_path / "a.jsonl"), skip_bad=True)


def test_row_numbers_in_place_of_ids_are_told_if_they_are_used(tmp_path: Path) -> None:
    told = Listener()
    texts = identified_texts(as_source(written(tmp_path / "a.jsonl", {"sku": "s1", "text": "x"})))
    texts.tell(told, ids=False)
    identified_texts(as_source(written(tmp_path / "b.jsonl", {"_id": "s1", "text": "x"}))).tell(told)
    (tmp_path / "a.txt").write_text("x\n")
    identified_texts(as_source(tmp_path / "a.txt")).tell(told)
    assert told.heard == []
    texts.tell(told)
    assert told.notes == [
        f"{tmp_path / 'a.jsonl'} has no column of ids (_id, id, doc_id, docid or document_id); the ids are row numbers "
        "from 0, unless `id_column` names another column"
    ]


@pytest.mark.parametrize("cut", [None, passages_of])
def test_columns_of_text_that_are_not_read_are_told(tmp_path: Path, cut: Cut | None) -> None:
    """The title of a table in another language was left out without a word."""
    path = tmp_path / "a.csv"
    lines = ["Nr;Titel;Text;Link;Autor", "1;;Ein Text.;https://a.de/ein-Text;", "2;Neue Pumpe;Noch einer.;;Anna Weiß"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    folder = texts_of_folder(tmp_path, find_document_files(tmp_path), cut=cut)
    for texts in (identified_texts(as_source(path), cut=cut), folder):
        told = Listener()
        assert [text for _, text in texts.read()] == ["Ein Text.", "Noch einer."]
        texts.tell(told)
        assert (
            f"{path}: columns of text that are not read: Titel, Autor; to read them, name all columns with "
            in (told.notes[-1])
        )
    told = Listener()
    named = identified_texts(as_source(path), ReadOptions(columns=("Titel", "Text"), id_column="Nr"), cut)
    assert [text for _, text in named.read()] == ["Ein Text.", "Neue Pumpe Noch einer."]
    named.tell(told)
    assert told.heard == []


def test_the_column_of_ids_can_be_named(tmp_path: Path) -> None:
    source = as_source(written(tmp_path / "a.jsonl", *({"id": n, "url": f"u{n}", "text": "Text."} for n in range(2))))
    texts = identified_texts(source, URL)
    assert list(texts.read()) == [("u0", "Text."), ("u1", "Text.")]
    assert texts.named
    assert [one for one, _ in identified_texts(source, URL, passages_of).read()] == ["u0#0", "u1#0"]
    found = find_document_files(tmp_path)
    assert [one for one, _ in texts_of_folder(tmp_path, found, URL).read()] == ["u0", "u1"]
    assert [one for one, _ in texts_of_folder(tmp_path, found, URL, passages_of).read()] == ["u0#0", "u1#0"]


def test_a_named_column_of_ids_is_there_and_not_empty(tmp_path: Path) -> None:
    source = as_source(written(tmp_path / "a.jsonl", {"url": "u0", "text": "x"}, {"url": None, "text": "y"}))
    for cut in (None, passages_of):
        with pytest.raises(InputError, match="no column 'urls'") as caught:
            list(identified_texts(source, ReadOptions(id_column="urls"), cut).read())
        assert str(caught.value.hint).startswith("did you mean url?")
        with pytest.raises(InputError, match="line 2: no 'url', the column of ids"):
            list(identified_texts(source, URL, cut).read())
        texts = identified_texts(source, URL, cut, skip_bad=True)
        assert [one.partition("#")[0] for one, _ in texts.read()] == ["u0"]
    written(tmp_path / "corpus.jsonl", {"_id": "1", "text": "x"})
    with pytest.raises(InputError, match="has a column for the ids"):
        texts_of_folder(tmp_path, find_document_files(tmp_path), URL)


@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(id_column="uid")])
def test_ids_can_be_floating_point_numbers(tmp_path: Path, options: ReadOptions) -> None:
    """pandas makes them of integers if some are missing."""
    path, column = tmp_path / "a.parquet", options.id_column or "doc_id"
    for cut, expected in ((None, ["7", "8"]), (passages_of, ["7#0", "8#0"])):
        for kind in (pa.float32(), pa.float64()):
            pq.write_table(pa.table({column: pa.array([7.0, 8.0], kind), "text": ["One.", "Two."]}), path)
            texts = identified_texts(as_source(path), options, cut)
            assert [one for one, _ in texts.read()] == expected
            assert texts.named
        for wrong in (0.5, float("inf"), 2.0**54):
            pq.write_table(pa.table({column: [1.0, wrong], "text": ["One.", "Two."]}), path)
            with pytest.raises(InputError, match=f"line 2: '{column}' is .*; an id is text or a whole number"):
                list(identified_texts(as_source(path), options, cut).read())


def test_a_collection_is_read_completely(tmp_path: Path) -> None:
    written(tmp_path / "corpus.jsonl", {"_id": "1", "text": "x"})
    with pytest.raises(InputError, match="read completely"):
        texts_of_folder(tmp_path, find_document_files(tmp_path), skip_bad=True)


def test_a_file_of_markup_is_one_text_and_its_lines_if_named_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# Passports\n\nRenewed **here**.\nSoon.\n")
    assert read(path) == [(str(path), "Passports Renewed here.\nSoon.")]
    assert len(list(identified_texts(as_source(path), ReadOptions("text")).read())) == 4


def test_columns_need_a_table(tmp_path: Path) -> None:
    for name in ("a.md", "b.txt"):
        (tmp_path / name).write_text("# Passports\n")
    found = find_document_files(tmp_path)
    for options, cut in product((ReadOptions(columns=("body",)), URL), (None, passages_of)):
        for name in ("a.md", "b.txt"):
            with pytest.raises(InputError, match=f"no table in .*{name}"):
                identified_texts(as_source(tmp_path / name), options, cut)
        with pytest.raises(InputError, match="no table in"):
            texts_of_folder(tmp_path, found, options, cut)
    written(tmp_path / "c.jsonl", {"url": "u", "body": "x"})
    both = ReadOptions(columns=("body",), id_column="url")
    texts = texts_of_folder(tmp_path, find_document_files(tmp_path), both)
    assert [one for one, _ in texts.read()] == ["a.md", "b.txt", "u"]


def test_a_mistyped_column_is_told_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path / "a.jsonl", {"id": 1, "body": "x"}), "boddy")
    assert str(caught.value.hint).startswith("did you mean body?")


def test_passages_are_of_rows_of_any_split(tmp_path: Path) -> None:
    rows = ({"id": split, "text": "A text.", "split": split} for split in ("train", "test"))
    source = as_source(written(tmp_path / "a.jsonl", *rows))
    assert [one for one, _ in identified_texts(source, cut=passages_of).read()] == ["train#0", "test#0"]
    (folder := tmp_path / "docs").mkdir()
    sentences = ({"id": split, "sentence": "A text.", "split": split} for split in ("train", "test"))
    path = written(folder / "b.jsonl", *sentences)
    assert [one for one, _ in identified_texts(as_source(path), cut=passages_of).read()] == ["train#0", "test#0"]
    assert [one for one, _ in texts_of_folder(folder, find_document_files(folder)).read()] == ["train", "test"]


def test_documents_without_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    path = written(tmp_path / "a.jsonl", {"text": "A text."}, {"text": " "}, {"text": None})
    folder = texts_of_folder(tmp_path, find_document_files(tmp_path))
    for texts, count in ((folder, 3), (identified_texts(as_source(path), cut=passages_of), 2)):
        told = Listener()
        assert [text for _, text in texts.read()] == ["A text."]
        texts.tell(told)
        assert told.notes == [f"left out {count} documents without text"]
