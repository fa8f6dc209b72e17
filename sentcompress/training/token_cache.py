"""Token ids of a whole sentence table, computed once and memory-mapped during training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sentcompress.progress import Reporter
from sentcompress.ranks.alone import ALONE, Ranks
from sentcompress.store import Build
from sentcompress.store.arrays import save_array

Tokenize = Callable[[Sequence[str]], list[list[int]]]
# Texts per call of the tokenizer, whose lists take 50 times the memory of the arrays.
PIECE = 10_000


class TextShards(Protocol):
    """The part of `corpora.sentence_table.SentenceTable` that is needed here."""

    @property
    def shard_rows(self) -> list[int]: ...

    def texts(self, shard: int) -> list[str]: ...


class TokenCache:
    """Token ids by row number: one flat array per shard of the table, and the length of every row."""

    def __init__(self, folder: Path, shards: int) -> None:
        # Plain arrays: slicing a `memmap` object costs far more than copying the tokens.
        self._flat = [np.asarray(np.load(folder / f"{shard:05d}.tokens.npy", mmap_mode="r")) for shard in range(shards)]
        by_shard = [np.load(folder / f"{shard:05d}.lengths.npy") for shard in range(shards)]
        self.lengths: npt.NDArray[np.int32] = np.concatenate([np.zeros(0, np.int32), *by_shard])
        self._starts = np.cumsum([0, *(len(lengths) for lengths in by_shard)])
        # The start of each row in its shard's flat array.
        self._offsets = np.concatenate([np.zeros(0, np.int64), *(np.cumsum(lengths) - lengths for lengths in by_shard)])

    def rows(self, rows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int32]]:
        """The token ids of rows [B], in their order."""
        shards = np.searchsorted(self._starts, rows, side="right") - 1
        starts = self._offsets[rows]
        places = zip(shards.tolist(), starts.tolist(), (starts + self.lengths[rows]).tolist(), strict=True)
        return [self._flat[shard][start:end] for shard, start, end in places]


def build_token_cache(
    build: Build, folder: str, table: TextShards, tokenize: Tokenize, reporter: Reporter, ranks: Ranks = ALONE
) -> TokenCache:
    """Tokenise every sentence of `table` into `folder` of the build; complete shards are kept."""
    mine = [(shard, rows) for shard, rows in enumerate(table.shard_rows) if shard % ranks.count == ranks.number]
    with reporter.track("tokenising", total=sum(rows for _, rows in mine)) as task:
        for shard, rows in mine:
            if not _is_whole(build.path / folder, shard, rows):
                _tokenise_shard(build, f"{folder}/{shard:05d}", table.texts(shard), tokenize)
            task.advance(rows)
        ranks.meet()
    return TokenCache(build.path / folder, len(table.shard_rows))


def _is_whole(folder: Path, shard: int, rows: int) -> bool:
    """Whether both arrays of a shard exist and match."""
    try:
        lengths = np.load(folder / f"{shard:05d}.lengths.npy")
        flat = np.load(folder / f"{shard:05d}.tokens.npy", mmap_mode="r")
    except (FileNotFoundError, ValueError, EOFError):  # the last two: truncated, or not an array
        return False
    return bool(lengths.shape == (rows,) and flat.shape == (int(lengths.sum()),))


def _tokenise_shard(build: Build, name: str, texts: list[str], tokenize: Tokenize) -> None:
    flat: list[npt.NDArray[np.int32]] = [np.zeros(0, np.int32)]
    lengths: list[int] = []
    for start in range(0, len(texts), PIECE):
        tokens = tokenize(texts[start : start + PIECE])
        lengths.extend(map(len, tokens))
        flat.append(np.fromiter(chain.from_iterable(tokens), dtype=np.int32))
    for part, array in (("tokens", np.concatenate(flat)), ("lengths", np.asarray(lengths, dtype=np.int32))):
        # The lengths come last: if they exist, the shard is complete.
        with build.write(f"{name}.{part}.npy") as path:
            save_array(path, array)
