"""Token ids on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from interrupting import interrupted
from number_words import tokenize

from sentcompress.progress import SILENT
from sentcompress.store import Request, WorkDirectory
from sentcompress.training import token_cache
from sentcompress.training.token_cache import build_token_cache

FILES = [["1", "2 3", "4 5 6"], ["7 8 9 10"], ["11", "12 13"]]


class Table:
    file_rows = [len(file) for file in FILES]  # noqa: RUF012

    def texts(self, file: int) -> list[str]:
        return FILES[file]


def test_rows_of_any_file_in_any_order(tmp_path: Path) -> None:
    with WorkDirectory(tmp_path).build(Request("students", "one", "distill", {})) as build:
        cache = build_token_cache(build, "tokens", Table(), tokenize, SILENT)
    assert cache.lengths.tolist() == [1, 2, 3, 4, 1, 2]
    assert [cache[row].tolist() for row in range(len(cache))] == [
        tokenize([text])[0] for file in FILES for text in file
    ]
    ids, mask = cache.padded(np.array([5, 0, 3, 2]), pad=99)
    assert ids.tolist() == [[12, 13, 99, 99], [1, 99, 99, 99], [7, 8, 9, 10], [4, 5, 6, 99]]
    assert mask.tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]]


@pytest.mark.parametrize("part", ["tokens", "lengths"])
@pytest.mark.parametrize("damage", ["gone", "cut", "another"])
def test_a_file_that_is_not_whole_is_made_again(tmp_path: Path, part: str, damage: str) -> None:
    with WorkDirectory(tmp_path).build(Request("students", "one", "distill", {})) as build:
        with interrupted(token_cache, "_join"):
            build_token_cache(build, "tokens", Table(), tokenize, SILENT)
        path = build.path / "tokens" / f"00000.{part}.npy"
        content = path.read_bytes()
        path.unlink()
        if damage == "cut":
            path.write_bytes(content[: len(content) - 4])
        elif damage == "another":
            np.save(path, np.ones(7, dtype=np.int32))
        made: list[str] = []
        cache = build_token_cache(
            build, "tokens", Table(), lambda texts: (made.extend(texts), tokenize(texts))[1], SILENT
        )
    assert made == FILES[0]
    assert cache.lengths.tolist() == [1, 2, 3, 4, 1, 2]
    assert cache.flat.tolist() == list(range(1, 14))


@pytest.mark.parametrize("part", ["tokens", "lengths"])
@pytest.mark.parametrize("damage", [None, "gone", "cut"])
def test_the_joined_arrays_are_opened_again_or_made_again(tmp_path: Path, part: str, damage: str | None) -> None:
    with WorkDirectory(tmp_path).build(Request("students", "one", "distill", {})) as build:
        build_token_cache(build, "tokens", Table(), tokenize, SILENT)
        path = build.path / "tokens" / f"all.{part}.npy"
        assert sorted(file.name for file in path.parent.iterdir()) == ["all.lengths.npy", "all.tokens.npy"]
        content = path.read_bytes()
        if damage == "cut":
            path.write_bytes(content[: len(content) - 4])
        elif damage == "gone":
            path.unlink()
        made: list[str] = []
        cache = build_token_cache(
            build, "tokens", Table(), lambda texts: (made.extend(texts), tokenize(texts))[1], SILENT
        )
        assert bool(made) == (damage is not None)
        assert path.read_bytes() == content
    assert cache.flat.tolist() == list(range(1, 14))


def test_files_that_are_there_are_not_made_again(tmp_path: Path) -> None:
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
    assert seen == FILES[2]
