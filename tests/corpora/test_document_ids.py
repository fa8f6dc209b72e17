"""Ids in one block of bytes."""

from __future__ import annotations

import pytest

from sentcompress.corpora import document_ids
from sentcompress.corpora.document_ids import DocumentIds


def test_ids_come_back_as_bytes() -> None:
    ids = DocumentIds(["7", "", "größer", "a b"])
    assert len(ids) == 4
    assert [ids[row] for row in range(4)] == [b"7", b"", "größer".encode(), b"a b"]


def test_an_id_that_occurs_twice_is_found_and_a_shared_hash_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert DocumentIds(str(number) for number in range(1000)).repeated() is None
    assert DocumentIds(["a", "b", "c", "b"]).repeated() == "b"
    monkeypatch.setattr(document_ids, "hash", lambda one: 1, raising=False)
    assert DocumentIds(["a", "b"]).repeated() is None
    assert DocumentIds().repeated() is None
