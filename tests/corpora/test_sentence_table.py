"""Writing and reading a sentence table, and finding repetitions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from sentcompress.corpora import sentence_table
from sentcompress.corpora.sentence_index import SentenceIndex, sentence_hashes
from sentcompress.corpora.sentence_table import SentenceTable, SentenceWriter


def writer_into(folder: Path) -> SentenceWriter:
    @contextmanager
    def write(name: str) -> Iterator[Path]:
        yield folder / name

    return SentenceWriter(write)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SentenceTable:
    """Sentences "0" to "22" in files of seven."""
    monkeypatch.setattr(sentence_table, "FILE_ROWS", 7)
    writer = writer_into(tmp_path)
    for number in range(23):
        writer.add(str(number), sentence_table.ORIGINAL, -1, "file")
    writer.finish()
    return SentenceTable(tmp_path)


@pytest.mark.parametrize("count", [1, 2, 5, 10, 22, 23, 100])
def test_a_sample_is_spread_over_all_files(table: SentenceTable, count: int) -> None:
    assert len(table.files) == 4
    found = [int(text) for text in table.spread(count)]
    assert len(found) <= count
    assert found[0] == 0
    gaps = {later - earlier for earlier, later in pairwise(found)}
    assert len(gaps) <= 1
    assert 23 - found[-1] <= -(-23 // count)


@pytest.mark.parametrize(("start", "rows"), [(0, None), (5, None), (0, 7), (6, 9), (20, 3), (22, 1), (3, 0)])
def test_a_part_of_the_rows_can_be_streamed(table: SentenceTable, start: int, rows: int | None) -> None:
    found = [int(text) for texts in table.stream(start, rows) for text in texts]
    assert found == list(range(23))[start : None if rows is None else start + rows]


def test_files_of_long_sentences_have_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_table, "FILE_CHARACTERS", 25)
    writer = writer_into(tmp_path)
    for number in range(7):
        writer.add(f"{number} {'x' * 8}", "original", -1, "a.txt")
    writer.finish()
    assert (writer.rows, writer.files) == (7, 3)
    assert SentenceTable(tmp_path).file_rows == [3, 3, 1]


def test_rows_equal_those_of_a_dictionary() -> None:
    generator = random.Random(0)
    texts = [f"sentence {generator.randrange(3000)}" for _ in range(10_000)]
    index, known = SentenceIndex(), dict[str, int]()
    for start in range(0, len(texts), 700):
        batch = texts[start : start + 700]
        rows, new = index.assign(sentence_hashes(batch))
        first_seen = []
        for place, text in enumerate(batch):
            if text not in known:
                known[text] = len(known)
                first_seen.append(place)
        assert rows.tolist() == [known[text] for text in batch]
        assert new.tolist() == first_seen
    assert index.rows == len(known)


def test_a_limit_stops_new_rows_but_finds_old_ones() -> None:
    index = SentenceIndex()
    rows, new = index.assign(sentence_hashes(["a", "b", "a", "c", "b", "d"]), limit=2)
    assert rows.tolist() == [0, 1, 0, -1, 1, -1]
    assert new.tolist() == [0, 1]
    rows, new = index.assign(sentence_hashes(["e", "b"]), limit=2)
    assert rows.tolist() == [-1, 1]
    assert len(new) == 0


def test_hashes_are_stable_across_machines() -> None:
    # BLAKE2b-64 of the UTF-8 bytes, little-endian; resuming on another machine must find the same rows.
    assert sentence_hashes(["a", "h\u00e9"]).dtype == np.uint64
    assert sentence_hashes([]).shape == (0,)
    assert int(sentence_hashes(["abc"])[0]) == int.from_bytes(bytes.fromhex("d8bb14d833d59559"), "little")
