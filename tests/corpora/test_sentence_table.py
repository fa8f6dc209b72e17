"""Reading a sentence table back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from sentcompress.corpora import sentence_table
from sentcompress.corpora.sentence_table import SentenceTable, SentenceWriter


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SentenceTable:
    """Sentences "0" to "22" in shards of seven."""
    monkeypatch.setattr(sentence_table, "SHARD_ROWS", 7)

    @contextmanager
    def write(name: str) -> Iterator[Path]:
        yield tmp_path / name

    writer = SentenceWriter(write)
    for number in range(23):
        writer.add(str(number), sentence_table.ORIGINAL, -1, "file")
    writer.finish()
    return SentenceTable(tmp_path)


@pytest.mark.parametrize("count", [1, 2, 5, 10, 22, 23, 100])
def test_a_sample_is_spread_over_all_shards(table: SentenceTable, count: int) -> None:
    assert len(table.shards) == 4
    found = [int(text) for text in table.spread(count)]
    assert len(found) <= count
    assert found[0] == 0
    gaps = {later - earlier for earlier, later in pairwise(found)}
    assert len(gaps) <= 1
    assert 23 - found[-1] <= -(-23 // count)
