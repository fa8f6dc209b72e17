"""Entity pairs and the retrieval tasks made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora.entities import entities_data_set
from sentcompress.errors import InputError

ENTITY_HEADER = "query\tentity\tlabel\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """`a` has one match in test and another in train; `b` none; `c` only one in train."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "test.tsv").write_text(ENTITY_HEADER + "a\tx\t1\na\ty\t0\nb\tx\t0\n", encoding="utf-8")
    (folder / "train.tsv").write_text(ENTITY_HEADER + "a\tz\t1\nc\tx\t1\nd\t\t0\n", encoding="utf-8")
    return folder


def test_a_single_file_of_entities(folder: Path) -> None:
    data = entities_data_set(folder / "test.tsv", None)
    assert (data.protocol, data.name, data.split) == ("entities", "shop-test.tsv", None)
    collection = data.read()
    assert list(collection.corpus.texts()) == [["x", "y"]]
    assert collection.queries == ("a",)
    assert collection.grades == ({0: 1},)


def test_a_folder_has_one_catalogue_and_queries_of_a_split(folder: Path) -> None:
    data = entities_data_set(folder, None)
    assert (data.name, data.split, len(data.files)) == ("shop", "test", 2)
    collection = data.read()
    assert list(collection.corpus.texts()) == [["x", "y", "z"]]
    assert collection.queries == ("a",)
    assert collection.grades == ({0: 1, 2: 1},)
    assert collection.warnings == (f"{folder / 'train.tsv'}: dropped 1 pair with an empty text",)
    assert entities_data_set(folder, "train").read().queries == ("a", "c")


def test_entity_files_that_cannot_be_evaluated(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "none.tsv").write_text(ENTITY_HEADER + "a\tx\t0\n", encoding="utf-8")
    with pytest.raises(InputError, match="no pair of label 1"):
        entities_data_set(tmp_path / "none.tsv", None).read()
    with pytest.raises(InputError, match="no splits"):
        entities_data_set(tmp_path / "none.tsv", "test")
    with pytest.raises(InputError, match="no split 'dev'"):
        entities_data_set(folder, "dev")
    with pytest.raises(InputError, match="no such file"):
        entities_data_set(tmp_path / "gone.tsv", None)
    (tmp_path / "bad.tsv").write_text(ENTITY_HEADER + "a\tx\tyes\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2: label is 'yes'"):
        entities_data_set(tmp_path / "bad.tsv", None).read()
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no \.tsv"):
        entities_data_set(tmp_path / "empty", None)


def test_real_entities(shared_data: Path) -> None:
    collection = entities_data_set(shared_data / "er" / "amazon-google" / "test.tsv", None).read()
    assert 0 < collection.judged == len(collection.queries) < len(collection.corpus)


def test_languages_are_a_column(tmp_path: Path) -> None:
    rows = "radio\tRadio Eins\t1\tde\nradio\tRadio Uno\t1\tit\nnews\tNews\t0\ten\nmusik\tRadio Eins\t1\t\n"
    path = tmp_path / "test.tsv"
    path.write_text("query\tentity\tlabel\tLanguage\n" + rows, encoding="utf-8")
    collection = entities_data_set(path, None).read()
    assert list(collection.corpus.texts()) == [["Radio Eins", "Radio Uno", "News"]]
    assert collection.queries == ("radio", "radio", "musik")
    assert collection.languages == ("de", "it", "unknown")
    assert collection.grades == ({0: 1, 1: 1}, {0: 1, 1: 1}, {0: 1})


def write_pairs(path: Path, *rows: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ENTITY_HEADER + "".join(f"{row}\n" for row in rows), encoding="utf-8")


def test_languages_are_files(tmp_path: Path) -> None:
    write_pairs(tmp_path / "er" / "german.tsv", "a\tx\t1")
    write_pairs(tmp_path / "er" / "french.tsv", "b\ty\t1", "b\tz\t0")
    data = entities_data_set(tmp_path / "er", None)
    assert (data.name, data.split, len(data.files)) == ("er", None, 2)
    collection = data.read()
    assert (collection.queries, collection.languages) == (("b", "a"), ("french", "german"))
    assert len(collection.corpus) == 3
    # A file that `split` names is a split, as in any folder.
    assert entities_data_set(tmp_path / "er", "german").read().languages == ()


def test_languages_are_folders_of_splits(tmp_path: Path) -> None:
    for language, query in (("german", "a"), ("french", "b")):
        write_pairs(tmp_path / "er" / language / "test.tsv", f"{query}\t{query} {language}\t1")
        write_pairs(tmp_path / "er" / language / "train.tsv", f"{query}1\tonly in train\t1")
    write_pairs(tmp_path / "er" / "french" / "dev.tsv", "c\tx\t1")
    data = entities_data_set(tmp_path / "er", None)
    assert (data.split, len(data.files)) == ("test", 5)
    collection = data.read()
    assert (collection.queries, collection.languages) == (("b", "a"), ("french", "german"))
    assert len(collection.corpus) == 4
    assert entities_data_set(tmp_path / "er", "train").read().queries == ("b1", "a1")
    with pytest.raises(InputError, match="no split 'dev'"):
        entities_data_set(tmp_path / "er", "dev")
    (tmp_path / "er" / "german" / "test.tsv").unlink()
    (tmp_path / "er" / "german" / "train.tsv").rename(tmp_path / "er" / "german" / "valid.tsv")
    with pytest.raises(InputError, match="no split in common"):
        entities_data_set(tmp_path / "er", None)
