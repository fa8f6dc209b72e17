"""Token ids of a whole sentence table, computed once and memory-mapped during training.

The files of a table are tokenised one by one, so that an interrupted run keeps those that are complete, and then
joined into one pair of arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from sentcompress.models.token_batches import Tokenize, TokenRows
from sentcompress.progress import Reporter
from sentcompress.ranks.alone import ALONE, Ranks
from sentcompress.store import Build
from sentcompress.store.arrays import save_array, write_header

# The name of the joined arrays; those of single files are named by number.
ALL = "all"


class TextFiles(Protocol):
    """The part of `corpora.sentence_table.SentenceTable` that is needed here."""

    @property
    def file_rows(self) -> list[int]: ...

    def texts(self, file: int) -> list[str]: ...


def build_token_cache(
    build: Build, folder: str, table: TextFiles, tokenize: Tokenize, reporter: Reporter, ranks: Ranks = ALONE
) -> TokenRows:
    """Tokenise every sentence of `table` into `folder` of the build, by row number; complete files are kept.

    The ranks share the files, and rank 0 joins them.
    """
    if not _is_whole(build.path / folder, ALL, sum(table.file_rows)):
        names = [f"{file:05d}" for file in range(len(table.file_rows))]
        mine = [file for file in range(len(names)) if file % ranks.count == ranks.number]
        with reporter.track("tokenising", total=sum(table.file_rows[file] for file in mine)) as task:
            for file in mine:
                rows = table.file_rows[file]
                if not _is_whole(build.path / folder, names[file], rows):
                    _tokenise_file(build, f"{folder}/{names[file]}", table.texts(file), tokenize)
                task.advance(rows)
            ranks.meet()
        if ranks.first:
            _join(build, folder, names)
        ranks.meet()
    return _opened(build.path / folder, ALL)


def _opened(folder: Path, name: str) -> TokenRows:
    # A plain array: slicing a `memmap` object costs far more than copying the tokens.
    flat = np.asarray(np.load(folder / f"{name}.tokens.npy", mmap_mode="r"))
    return TokenRows.joined(flat, np.load(folder / f"{name}.lengths.npy"))


def _is_whole(folder: Path, name: str, rows: int) -> bool:
    """Whether both arrays of a file, or of the whole table, exist and match."""
    try:
        found = _opened(folder, name)
    except (FileNotFoundError, ValueError, EOFError):  # the last two: truncated, or not an array
        return False
    return bool(found.lengths.shape == (rows,) and found.flat.shape == (int(found.lengths.sum()),))


def _join(build: Build, folder: str, names: Sequence[str]) -> None:
    """Join the arrays of all files, so that one lookup finds the rows of a batch; the files are removed."""
    # One file is open at a time: a mapping keeps a file open, and its pages count as memory of this process.
    places = [build.path / folder / name for name in names]
    lengths = np.concatenate([np.zeros(0, np.int32), *(np.load(f"{place}.lengths.npy") for place in places)])
    with build.write(f"{folder}/{ALL}.tokens.npy") as path, path.open("wb") as stream:
        write_header(stream, np.int32, (int(lengths.sum(dtype=np.int64)),))
        for place in places:
            stream.write(np.load(f"{place}.tokens.npy").data)
    with build.write(f"{folder}/{ALL}.lengths.npy") as path:
        save_array(path, lengths)
    for name in names:
        for part in ("lengths", "tokens"):
            build.remove(f"{folder}/{name}.{part}.npy")


def _tokenise_file(build: Build, name: str, texts: list[str], tokenize: Tokenize) -> None:
    rows = TokenRows.tokenized(texts, tokenize)
    for part, array in (("tokens", rows.flat), ("lengths", rows.lengths)):
        # The lengths come last: if they exist, the file is complete.
        with build.write(f"{name}.{part}.npy") as path:
            save_array(path, array)
