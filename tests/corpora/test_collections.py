"""The parts of a retrieval task: ids, corpora, splits."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora import collections
from sentcompress.corpora.collections import DocumentIds, in_memory, pick_split, stem
from sentcompress.errors import InputError


def test_a_corpus_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collections, "CHUNK", 2)
    corpus = in_memory("abcde")
    for _ in range(2):
        assert list(corpus.texts()) == [["a", "b"], ["c", "d"], ["e"]]


def test_ids_are_returned_as_bytes() -> None:
    ids = DocumentIds(["7", "", "größer", "a b"])
    assert len(ids) == 4
    assert [ids[row] for row in range(4)] == [b"7", b"", "größer".encode(), b"a b"]


def test_repeated_ids_are_found_and_shared_hashes_are_not_repeated_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DocumentIds(str(number) for number in range(1000)).repeated() is None
    assert DocumentIds(["a", "b", "c", "b"]).repeated() == "b"
    monkeypatch.setattr(collections, "hash", lambda one: 1, raising=False)
    assert DocumentIds(["a", "b"]).repeated() is None
    assert DocumentIds().repeated() is None


def test_the_requested_split_or_test_or_dev_or_the_only_one() -> None:
    assert pick_split("x", ["dev", "test", "train"], "train") == "train"
    assert pick_split("x", ["train", "dev", "test"], None) == "test"
    assert pick_split("x", ["train", "dev"], None) == "dev"
    assert pick_split("x", ["anything"], None) == "anything"
    assert pick_split("x", ["train", "validation"], "dev") == "validation"
    assert pick_split("x", ["train", "dev", "validation"], "validation") == "validation"
    with pytest.raises(InputError, match="several splits"):
        pick_split("x", ["one", "two"], None)
    with pytest.raises(InputError) as caught:
        pick_split("x", ["dev", "train"], "trian")
    assert "did you mean train?" in (caught.value.hint or "")


def test_names_without_extensions() -> None:
    assert [stem(Path(name)) for name in ("a/test.tsv", "test.tsv.gz", "dev.small.tsv.zst")] == [
        "test",
        "test",
        "dev.small",
    ]
