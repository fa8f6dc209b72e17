from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora import holding, sentence_table
from sentcompress.corpora.holding import Held, batches
from sentcompress.corpora.pairs import read_pairs
from sentcompress.corpora.sentence_table import SentenceTable, SentenceWriter
from sentcompress.corpora.sts import read_sts_file
from sentcompress.corpora.transfer import read_transfer
from sentcompress.errors import InputError


def test_batches_end_by_number_or_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "BATCH_CHARACTERS", 10)
    assert list(batches(["a", "b", "c", "x" * 20, "y" * 9, "zz", "d"], 3, len)) == [
        ["a", "b", "c"],
        ["x" * 20],
        ["y" * 9, "zz"],
        ["d"],
    ]
    assert list(batches([], 3, len)) == []


def test_held_texts_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "LARGEST_SET", 1000)
    held = Held("a.tsv")
    held.add("x" * 500, "y")
    with pytest.raises(InputError, match=r"a\.tsv holds more than"):
        held.add("z" * 300)


def test_sets_that_are_read_whole_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "LARGEST_SET", 2000)
    (tmp_path / "a.tsv").write_text("".join(f"{number}\tone text\tanother\n" for number in range(20)))
    with pytest.raises(InputError, match=r"a\.tsv holds more than"):
        read_sts_file(tmp_path / "a.tsv")
    (tmp_path / "q.csv").write_text("question1,question2,is_duplicate\n" + "one text,another,1\n" * 20)
    with pytest.raises(InputError, match=r"q\.csv holds more than"):
        read_pairs(tmp_path / "q.csv")
    (tmp_path / "MR").mkdir()
    (tmp_path / "MR" / "all.tsv").write_text("".join(f"{number % 2}\tone text\n" for number in range(20)))
    with pytest.raises(InputError, match=r"all\.tsv holds more than"):
        read_transfer(tmp_path / "MR")


def test_shards_of_long_sentences_have_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import contextmanager

    @contextmanager
    def write(name: str):  # type: ignore[no-untyped-def]
        yield tmp_path / name

    monkeypatch.setattr(sentence_table, "SHARD_CHARACTERS", 25)
    writer = SentenceWriter(write)
    for number in range(7):
        writer.add(f"{number} {'x' * 8}", "original", -1, "a.txt")
    writer.finish()
    assert (writer.rows, writer.shards) == (7, 3)
    assert SentenceTable(tmp_path).shard_rows == [3, 3, 1]
