"""Texts with their ids in one file, of which single rows are read without the others."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from sentcompress.corpora.collections import DocumentIds
from sentcompress.errors import InputError
from sentcompress.json_documents import parse_json
from sentcompress.store.arrays import save_array

TEXTS, STARTS = "texts.jsonl", "starts.npy"


def write_texts(folder: Path, rows: Iterable[tuple[str, str]], name: str) -> int:
    """Write (id, text) rows into a folder, which is created; returns their number.

    Raises:
        InputError: if two rows have the same id, or there are none; `name` is that of their origin.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ids, starts, place = DocumentIds(), array("q"), 0
    with (folder / TEXTS).open("wb") as stream:
        for one, text in rows:
            ids.append(one)
            starts.append(place)
            place += stream.write(json.dumps([one, text], ensure_ascii=False).encode() + b"\n")
    if not ids:
        raise InputError(f"{name} has no documents with text", "give a collection with at least one")
    if (repeated := ids.repeated()) is not None:
        raise InputError(f"{name} has two documents with the id {repeated!r}", "ids must be unique")
    save_array(folder / STARTS, np.frombuffer(starts, dtype=np.int64))
    return len(ids)


class TextStore:
    """The rows of a folder that `write_texts` wrote."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TEXTS
        self._starts = np.load(folder / STARTS, mmap_mode="r", allow_pickle=False)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, row: int) -> tuple[str, str]:
        """The id and the text of a row."""
        with self._path.open("rb") as stream:
            stream.seek(int(self._starts[row]))
            return self._parsed(stream.readline())

    def texts(self) -> Iterator[str]:
        """All texts in order."""
        with self._path.open("rb") as stream:
            for line in stream:
                yield self._parsed(line)[1]

    def _parsed(self, line: bytes) -> tuple[str, str]:
        one, text = parse_json(line, str(self._path))
        return one, text
