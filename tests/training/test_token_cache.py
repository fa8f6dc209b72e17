"""Token ids on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sentcompress.progress import SILENT
from sentcompress.store import Request, WorkDirectory
from sentcompress.training.token_cache import build_token_cache

SHARDS = [["1", "2 3", "4 5 6"], ["7 8 9 10"], ["11", "12 13"]]


class Table:
    shard_rows = [len(shard) for shard in SHARDS]  # noqa: RUF012

    def texts(self, shard: int) -> list[str]:
        return SHARDS[shard]


def tokenize(texts: Sequence[str]) -> list[list[int]]:
    return [[int(word) for word in text.split()] for text in texts]


def test_rows_of_any_shard_in_any_order(tmp_path: Path) -> None:
    with WorkDirectory(tmp_path).build(Request("students", "one", "distill", {})) as build:
        cache = build_token_cache(build, "tokens", Table(), tokenize, SILENT)
    assert cache.lengths.tolist() == [1, 2, 3, 4, 1, 2]
    assert [ids.tolist() for ids in cache.rows(np.array([5, 0, 3, 2]))] == [[12, 13], [1], [7, 8, 9, 10], [4, 5, 6]]


@pytest.mark.parametrize("part", ["tokens", "lengths"])
@pytest.mark.parametrize("damage", ["gone", "cut", "another"])
def test_a_shard_that_is_not_whole_is_made_again(tmp_path: Path, part: str, damage: str) -> None:
    with WorkDirectory(tmp_path).build(Request("students", "one", "distill", {})) as build:
        build_token_cache(build, "tokens", Table(), tokenize, SILENT)
        path = build.path / "tokens" / f"00000.{part}.npy"
        content = path.read_bytes()
        path.unlink()
        if damage == "cut":
            path.write_bytes(content[: len(content) - 4])
        elif damage == "another":
            np.save(path, np.ones(7, dtype=np.int32))
        cache = build_token_cache(build, "tokens", Table(), tokenize, SILENT)
    assert cache.lengths.tolist() == [1, 2, 3, 4, 1, 2]
    assert path.read_bytes() == content


def test_shards_that_are_there_are_not_made_again(tmp_path: Path) -> None:
    seen: list[str] = []

    def stop_at_eleven(texts: Sequence[str]) -> list[list[int]]:
        seen.extend(texts)
        if "11" in texts:
            raise KeyboardInterrupt
        return tokenize(texts)

    work, request = WorkDirectory(tmp_path), Request("students", "one", "distill", {})
    with pytest.raises(KeyboardInterrupt), work.build(request) as build:
        build_token_cache(build, "tokens", Table(), stop_at_eleven, SILENT)
    seen.clear()
    with work.build(request) as build:
        build_token_cache(build, "tokens", Table(), lambda texts: (seen.extend(texts), tokenize(texts))[1], SILENT)
    assert seen == SHARDS[2]
