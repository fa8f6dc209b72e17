"""The interface through which evaluations compute or look up vectors of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sentcompress.encoding.token_counts import TokenCounts
from sentcompress.progress import Task

Vectors = npt.NDArray[np.float32]


class Embedder(Protocol):
    """Computes or looks up vectors of texts."""

    @property
    def dimension(self) -> int:
        """D, the width of the vectors."""

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        """N texts -> [N, D] in their order; every distinct text is encoded once."""

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        """The same for any number of texts in bounded memory; yields consecutive rows in order."""

    def described(self) -> dict[str, Any]:
        """Dimension, parameters and number format, for the manifest."""

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts | None:
        """Token counts of the texts; None if there is no tokenizer."""


class WrappedEmbedder:
    """Computes vectors with another embedder, and is described like it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def described(self) -> dict[str, Any]:
        return self._embedder.described()

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts | None:
        return self._embedder.count_tokens(texts)


class PromptedEmbedder(WrappedEmbedder):
    """Puts a prompt before every text.

    Args:
        embedder: one that puts none there.
        prompt_of: the prompt of a text; it can be empty.
    """

    def __init__(self, embedder: Embedder, prompt_of: Callable[[str], str]) -> None:
        super().__init__(embedder)
        self._prompt_of = prompt_of

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        return self._embedder.encode(self._prompted(texts), task)

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        return self._embedder.stream(map(self._prompted, chunks), task)

    def count_tokens(self, texts: Sequence[str]) -> TokenCounts | None:
        return self._embedder.count_tokens(self._prompted(texts))

    def _prompted(self, texts: Sequence[str]) -> list[str]:
        return [self._prompt_of(text) + text for text in texts]


class MappedEmbedder(WrappedEmbedder):
    """An embedder whose vectors are mapped to another space.

    Args:
        apply: [N, D] -> [N, dimension].
    """

    def __init__(self, embedder: Embedder, apply: Callable[[Vectors], Vectors], dimension: int) -> None:
        super().__init__(embedder)
        self._apply, self._dimension = apply, dimension

    @property
    def dimension(self) -> int:
        return self._dimension

    def encode(self, texts: Sequence[str], task: Task | None = None) -> Vectors:
        return self._apply(self._embedder.encode(texts, task))

    def stream(self, chunks: Iterable[Sequence[str]], task: Task | None = None) -> Iterator[Vectors]:
        return (self._apply(part) for part in self._embedder.stream(chunks, task))

    def described(self) -> dict[str, Any]:
        return {**super().described(), "dimension": self.dimension}
