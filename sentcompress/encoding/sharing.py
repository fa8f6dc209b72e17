"""Texts that all ranks encode together for rank 0, which evaluates (docs/decisions/0016-ranks.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

import numpy as np
import torch

from sentcompress.encoding.batches import windows
from sentcompress.encoding.embedder import Embedder, Vectors, WrappedEmbedder
from sentcompress.models.catalog import NamedModel
from sentcompress.progress import Task
from sentcompress.ranks.alone import Ranks

# Fewer texts are encoded by rank 0 alone.
FEWEST = 256
OPEN, ENCODE, END = "open", "encode", "end"


class Sharing:
    """Rank 0's side: tells the other ranks which models to open and which texts to encode."""

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._opened = 0
        # Requests come from several threads, but ranks have to do the same in the same order.
        self._lock = Lock()

    def of(self, model: NamedModel, embedder: Embedder, device: str) -> SharedEmbedder:
        """An embedder of the same model that all ranks compute."""
        with self._lock:
            self._ranks.spread((OPEN, model, device, embedder.described()["dtype"]))
            self._opened += 1
            return SharedEmbedder(embedder, self, self._opened - 1)

    def encode(self, number: int, embedder: Embedder, texts: Sequence[str], task: Task | None) -> Vectors:
        """Vectors of texts, by the model that was opened as `number`."""
        with self._lock:
            self._ranks.spread((ENCODE, number, list(texts)))
            return encode_share(self._ranks, embedder, texts, task)

    def end(self) -> None:
        """End the service of the other ranks."""
        with self._lock:
            self._ranks.spread((END,))


class SharedEmbedder(WrappedEmbedder):
    """Rank 0's embedder, whose texts are divided among all ranks."""

    def __init__(self, embedder: Embedder, sharing: Sharing, number: int) -> None:
        super().__init__(embedder)
        self._sharing, self._number = sharing, number

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        if len(texts) < FEWEST:
            return self._embedder.encode(texts, task)
        return self._sharing.encode(self._number, self._embedder, texts, task)

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        return (self.encode(window, task) for window in windows(chunks))


def encode_share(ranks: Ranks, embedder: Embedder, texts: Sequence[str], task: Task | None = None) -> Vectors:
    """Vectors of all texts, of which each rank encodes its share: one in as many as there are ranks."""
    own = texts[ranks.number :: ranks.count]
    lengths = [len(range(rank, len(texts), ranks.count)) for rank in range(ranks.count)]
    encoded = torch.from_numpy(embedder.encode(own, task))
    found = ranks.gather({"vectors": encoded}, {"vectors": lengths}).views["vectors"].numpy()
    if task:
        task.advance(len(texts) - len(own))
    order = np.concatenate([np.arange(rank, len(texts), ranks.count) for rank in range(ranks.count)])
    vectors: Vectors = np.empty_like(found)
    vectors[order] = found
    return vectors


def serve(ranks: Ranks, opened: Callable[[NamedModel, str, str], Embedder]) -> None:
    """What the other ranks do until rank 0 has finished.

    Args:
        opened: makes an embedder of a model, a device and a number format.
    """
    models: list[Embedder] = []
    while (asked := ranks.spread(None))[0] != END:
        if asked[0] == OPEN:
            models.append(opened(*asked[1:]))
        else:
            encode_share(ranks, models[asked[1]], asked[2])


_current: list[Sharing] = []


def current_sharing() -> Sharing | None:
    """The sharing of texts among ranks that is in effect; None if this process encodes alone."""
    return _current[-1] if _current else None


@contextmanager
def sharing(ranks: Ranks) -> Iterator[None]:
    """Let all models that rank 0 opens within the block be computed by all ranks."""
    found = Sharing(ranks)
    _current.append(found)
    try:
        yield
        found.end()
    finally:
        _current.pop()
