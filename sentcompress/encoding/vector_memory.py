"""Vectors that a model has once computed, kept beside the work directory's results.

The teacher stands beside every student in every evaluation, and a student is searched with one index after another:
without a memory each would be encoded again, which is most of an evaluation's time.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.holding import batches

Vectors = npt.NDArray[np.float32]
# Vectors of one model; a large corpus is not worth its disk, nor the keys their memory.
MOST = 200_000
WINDOW = 8192
KEY_BYTES = 16


class VectorMemory:
    """Vectors by text, in a folder of its own for each model and number format. Deleting it costs nothing but time.

    Every batch of new vectors is a pair of files, the keys written last; so nothing is ever half there, and several
    processes may write at once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: list[Vectors] = []
        self._places: dict[bytes, tuple[int, int]] = {}
        for path in sorted(folder.glob("*.keys.npy")):
            vectors = path.with_name(path.name.replace(".keys.npy", ".vectors.npy"))
            if vectors.exists():
                self._add(np.load(path), np.load(vectors, mmap_mode="r"))

    def __len__(self) -> int:
        return len(self._places)

    def encode(self, texts: Sequence[str], compute: Callable[[Sequence[str]], Vectors]) -> Vectors:
        """Vectors of texts in their order, [N, D]; `compute` is asked for those that are not known yet."""
        keys = [_key(text) for text in texts]
        unknown: dict[bytes, str] = {}
        for key, text in zip(keys, texts, strict=True):
            if key not in self._places:
                unknown.setdefault(key, text)
        if not unknown and texts:
            return self._gather(keys)
        computed = compute(list(unknown.values()))
        if len(self) + len(unknown) <= MOST:
            if unknown:
                self._store(list(unknown), computed)
            return self._gather(keys) if texts else computed
        fresh = {key: row for row, key in enumerate(unknown)}
        return np.stack([computed[fresh[key]] if key in fresh else self._of(key) for key in keys])

    def _of(self, key: bytes) -> Vectors:
        shard, row = self._places[key]
        vector: Vectors = self._shards[shard][row]
        return vector

    def _gather(self, keys: Sequence[bytes]) -> Vectors:
        return np.stack([self._of(key) for key in keys])

    def _store(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        name = uuid.uuid4().hex
        table = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES)
        for kind, values in (("vectors", vectors), ("keys", table)):
            temporary = self._folder / f".{name}.{kind}.tmp"
            with temporary.open("wb") as stream:
                np.save(stream, values)
            os.replace(temporary, self._folder / f"{name}.{kind}.npy")
        self._add(table, vectors)

    def _add(self, keys: npt.NDArray[np.uint8], vectors: Vectors) -> None:
        shard = len(self._shards)
        self._shards.append(vectors)
        self._places.update((key.tobytes(), (shard, row)) for row, key in enumerate(keys))


def windows(chunks: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """The same texts in groups that are long enough to be encoded well."""
    return batches(chain.from_iterable(chunks), WINDOW, len)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
