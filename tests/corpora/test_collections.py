"""HPD's protocol on pairs small enough to do by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora import collections
from sentcompress.corpora.collections import collection_of_pairs, in_memory, pairs_data_set
from sentcompress.corpora.pairs import Pair
from sentcompress.errors import InputError

PAIRS = [
    Pair("a", "x", True),
    Pair("a", "y", False),
    Pair("a", "z", True),
    Pair("b", "x", False),
    Pair("c", "x", True),
    Pair("c", "x", False),  # the same pair judged twice: marked once is marked
    Pair("d", "a", False),  # a text may be a query and a document
]


def test_corpus_queries_and_relevance_by_hand() -> None:
    collection = collection_of_pairs(PAIRS)
    assert list(collection.corpus.texts()) == [["x", "y", "z", "a"]]
    assert collection.queries == ("a", "b", "c", "d")
    assert collection.grades == ({0: 1, 2: 1}, {}, {0: 1}, {})
    assert collection.judged == 2
    assert [collection.corpus.ids[row] for row in range(4)] == [b"x", b"y", b"z", b"a"]


def test_a_corpus_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "CHUNK", 2)
    corpus = in_memory("abcde")
    for _ in range(2):
        assert list(corpus.texts()) == [["a", "b"], ["c", "d"], ["e"]]


def test_a_file_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("question1,question2,is_duplicate\none,two,1\nthree,,0\n", encoding="utf-8")
    data = pairs_data_set(path)
    assert (data.protocol, data.name, data.split, data.files) == ("pairs", "pairs.csv", None, (path,))
    collection = data.read()
    assert collection.queries == ("one",)
    assert collection.warnings == (f"{path}: 1 pairs with an empty question left out",)


def test_files_that_are_of_no_use(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        pairs_data_set(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        pairs_data_set(tmp_path / "none.tsv")
    path = tmp_path / "none.csv"
    path.write_text("question1,question2,is_duplicate\none,two,0\n", encoding="utf-8")
    with pytest.raises(InputError, match="marks no pair as duplicates"):
        pairs_data_set(path).read()
