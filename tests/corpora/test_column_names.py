"""Columns whose names differ from the known ones only by case."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from beir import write_jsonl

from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.column_names import with_known_names
from sentcompress.corpora.document_files import read_documents
from sentcompress.corpora.identified_texts import identified_texts
from sentcompress.corpora.pairs import read_pairs
from sentcompress.corpora.readers import ReadOptions, find_format, read_records
from sentcompress.corpora.records import Record, Relation
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError
from sentcompress.mining.gathering import read_positives
from sentcompress.passages.querylog import read_log


@pytest.mark.parametrize(
    ("row", "named", "expected"),
    [
        ({"ID": 1, "Title": "t", "TEXT": "x"}, (), {"id": 1, "title": "t", "text": "x"}),
        ({"text": "x", "Text": "y", "Url": "u"}, (), {"text": "x", "Text": "y", "Url": "u"}),
        ({"TEXT": "x", "Text": "y"}, (), {"TEXT": "x", "Text": "y"}),
        ({"quality": 1, "#1 string": "a"}, (), {"Quality": 1, "#1 String": "a"}),
        ({"text": "x", "URL": "u"}, ("TEXT", "url"), {"TEXT": "x", "url": "u"}),
    ],
)
def test_a_column_is_renamed_if_its_name_is_known_and_only_one_has_it(
    row: dict[str, object], named: tuple[str, ...], expected: dict[str, object]
) -> None:
    assert list(with_known_names([(1, row)], named)) == [(1, expected)]


def test_rows_of_different_keys() -> None:
    rows = [{"Text": "a"}, {"text": "b", "Title": "t"}, {"Text": "c"}]
    found = [row for _, row in with_known_names(enumerate(rows))]
    assert found == [{"text": "a"}, {"text": "b", "title": "t"}, {"text": "c"}]


@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.jsonl", "a.parquet"])
def test_labelled_pairs(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    row = {"Premise": "p", "Hypothesis": "h", "Label": "neutral"}
    if name == "a.parquet":
        pq.write_table(pa.Table.from_pylist([row]), path)
    elif name == "a.jsonl":
        write_jsonl(path, [row])
    else:
        lines = [list(row), row.values()]
        path.write_text("".join((",".join(line) + "\n") for line in lines), encoding="utf-8")
    assert find_format(as_source(path), None) == {"a.txt": "csv"}.get(name, path.suffix[1:])
    assert list(read_records(path)) == [Record(("p", "h"), Relation.NEUTRAL)]


def test_documents_with_their_ids(tmp_path: Path) -> None:
    """A title and an id in another case were left out without a message."""
    path = write_jsonl(tmp_path / "a.jsonl", [{"ID": "7", "Title": "A title", "text": "A text."}])
    (document,) = read_documents(path, ReadOptions(joined=True), BadRecords())
    assert (document.id, document.title, document.text) == ("7", "A title", "A title A text.")
    assert list(identified_texts(as_source(path)).read()) == [("7", "A title A text.")]
    pq.write_table(pa.table({"ID": [7.0], "Text": ["A text."]}), tmp_path / "a.parquet")
    assert list(identified_texts(as_source(tmp_path / "a.parquet")).read()) == [("7", "A text.")]


def test_columns_that_the_user_names(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"Url": "u", "Headline": "Up", "Story": "A story."}])
    options = ReadOptions(columns=("headline", "STORY"), id_column="URL")
    assert list(identified_texts(as_source(path), options).read()) == [("u", "Up A story.")]
    (document,) = read_documents(path, options, BadRecords())
    assert (document.id, document.title) == ("u", "Up")
    assert [record.texts for record in read_records(path, ReadOptions(columns=("story",)))] == [("A story.",)]


def test_a_name_that_two_columns_have_in_other_cases_is_an_error(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", [{"STORY": "One.", "Story": "Two."}])
    with pytest.raises(InputError, match="no column 'story'") as caught:
        list(read_records(path, ReadOptions(columns=("story",))))
    assert str(caught.value.hint).startswith("did you mean Story? its columns: STORY, Story")


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_messages_have_the_names_that_are_in_the_file(tmp_path: Path, name: str) -> None:
    path, row = tmp_path / name, {"ID": "7", "Title": "A title"}
    if name == "a.parquet":
        pq.write_table(pa.Table.from_pylist([row]), path)
    elif name == "a.jsonl":
        write_jsonl(path, [row])
    else:
        path.write_text("ID,Title\n7,A title\n", encoding="utf-8")
    for read in (
        lambda: list(read_documents(path, ReadOptions(joined=True), BadRecords())),
        lambda: list(identified_texts(as_source(path)).read()),
        lambda: list(read_records(path)),
    ):
        with pytest.raises(InputError, match=r"cannot tell which columns? holds? the text \(columns: ID, Title\)"):
            read()
    with pytest.raises(InputError, match="no column 'titel'") as caught:
        list(read_records(path, ReadOptions(columns=("titel",))))
    assert caught.value.hint == "did you mean Title? its columns: ID, Title"
    write_jsonl(tmp_path / "b.jsonl", [{"Text": "A text."}, row])
    with pytest.raises(InputError, match=r"line 2: no 'text' \(there: ID, Title\)"):
        list(read_records(tmp_path / "b.jsonl"))


def test_pairs_have_them_too(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("Question1, Question2,Mark\na,b,1\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column 'is_duplicate'") as caught:
        read_pairs(path, ("question1", "question2", "is_duplicate"))
    assert caught.value.hint == "its columns: Question1, Question2, Mark"


def test_fields_of_objects_are_columns_if_they_are_named(tmp_path: Path) -> None:
    """Exports of APIs have their texts inside of objects; no option could name them."""
    rows = [
        {"meta": {"key": "u1", "head": {"title": "Up"}}, "body": {"de": "Hinauf.", "en": "Upwards."}},
        {"meta": {"key": "u2", "head": {"title": None}}, "body": {"en": "Down."}, "body.en": "Downwards."},
    ]
    path = write_jsonl(tmp_path / "a.jsonl", rows)
    options = ReadOptions(columns=("meta.head.title", "body.en"), id_column="meta.key")
    expected = [("u1", "Up Upwards."), ("u2", "Downwards.")]
    assert list(identified_texts(as_source(path), options).read()) == expected
    assert [(one.id, one.text) for one in read_documents(path, options, BadRecords())] == expected
    with pytest.raises(InputError, match=r"line 2: no 'body\.de'"):
        list(read_records(path, ReadOptions(columns=("body.de",))))
    with pytest.raises(InputError, match="line 1: 'body' is an object, not text") as caught:
        list(read_records(path, ReadOptions(columns=("body",))))
    assert caught.value.hint == "name a field of it with `column`: body.de, body.en"
    wordpress = write_jsonl(tmp_path / "b.jsonl", [{"ID": 7, "Content": {"rendered": "A post."}}])
    assert list(identified_texts(as_source(wordpress), ReadOptions(columns=("Content.rendered",))).read()) == [
        ("7", "A post.")
    ]
    with pytest.raises(InputError, match=r"no column 'body\.fr'"):
        list(read_records(path, ReadOptions(columns=("body.fr",))))


def test_queries_and_positives(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("Search,Clicks\nold maps,3\n", encoding="utf-8")
    assert list(read_log([path], BadRecords())) == ["old maps"]
    row = {"Question": "where?", "Answer": "here"}
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    for columns in ((), ("question", "answer")):
        (pair,) = read_positives(path, columns, BadRecords())
        assert (pair.first, pair.second, pair.match) == ("where?", "here", True)
