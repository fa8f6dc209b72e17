"""Turns a stream of texts into batches of token ids: windows, duplicates, lengths, token budgets, prefetching.

Does not import torch, for processes that run ONNX graphs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.text_files import batches
from sentcompress.models.token_batches import Tokenize, TokenRows, by_length
from sentcompress.progress import Task

# Sentences are sorted by length within a window. These bounds limit the memory: at most two windows of token ids
# (4 bytes each) and one of vectors (D x 4 bytes per sentence).
WINDOW_SENTENCES = 10_000
WINDOW_CHARACTERS = 4_000_000
# Starting another batch costs about as much as this share of a full one, so more padding than that does not pay off.
PADDING_SHARE = 1 / 16

Item = TypeVar("Item")


@dataclass(frozen=True)
class TokenizedWindow:
    """Texts that are sorted and batched together.

    Attributes:
        tokens: the distinct texts.
        places: [n], the index in `tokens` of each text of the window, in order.
    """

    tokens: TokenRows
    places: npt.NDArray[np.int64]


class WindowProgress:
    """Counts the texts of a window while it is encoded, in proportion to the tokens that are done.

    The longest texts come first. If texts were counted one by one, the speed would seem to rise within each window, and
    the estimate of the remaining time would go up and down.
    """

    def __init__(self, window: TokenizedWindow, task: Task | None) -> None:
        self._lengths, self._texts, self._task = window.tokens.lengths, len(window.places), task
        self._all, self._tokens, self._told = int(self._lengths.sum()), 0, 0

    def advance(self, batch: npt.NDArray[np.int64]) -> None:
        """Count the distinct texts with the indices `batch` as encoded."""
        self._tokens += int(self._lengths[batch].sum())
        texts = self._texts * self._tokens // self._all
        if self._task:
            self._task.advance(texts - self._told)
        self._told = texts


def windows(
    chunks: Iterable[Sequence[str]], sentences: int | None = None, characters: int | None = None
) -> Iterator[list[str]]:
    """Regroup chunks of any size into windows of bounded size, in order.

    Args:
        chunks: the texts, in chunks.
        sentences, characters: a window ends when it reaches one of them; by default WINDOW_SENTENCES and
            WINDOW_CHARACTERS.
    """
    texts = chain.from_iterable(chunks)
    return batches(texts, sentences or WINDOW_SENTENCES, len, characters or WINDOW_CHARACTERS)


def encode_distinct(
    stream: Callable[[Iterable[Sequence[str]], Task | None], Iterator[npt.NDArray[np.float32]]],
    dimension: int,
    texts: Sequence[str],
    task: Task | None,
) -> npt.NDArray[np.float32]:
    """Vectors of N texts in their order, [N, dimension]; each distinct text is encoded once.

    Args:
        stream: the `stream` of an Embedder, which yields [n, dimension].
        task: counts texts.
    """
    index: dict[str, int] = {}
    places = [index.setdefault(text, len(index)) for text in texts]
    vectors = np.empty((len(index), dimension), dtype=np.float32)
    done = 0
    for part in stream([list(index)], task):
        vectors[done : done + len(part)] = part
        done += len(part)
    if len(index) == len(texts):
        return vectors
    if task:
        task.advance(len(texts) - len(index))
    return vectors[places]


def tokenized(texts: Sequence[str], tokenize: Tokenize, padding: int) -> TokenizedWindow:
    """Tokenise each distinct text once; a text without tokens gets one token, `padding`."""
    index: dict[str, int] = {}
    places = np.fromiter((index.setdefault(text, len(index)) for text in texts), np.int64, len(texts))
    # Without special tokens, an empty text has no tokens, but a model needs at least one.
    rows = TokenRows.tokenized(list(index), lambda piece: [ids or [padding] for ids in tokenize(piece)])
    return TokenizedWindow(rows, places)


def plan_batches(lengths: Sequence[int] | npt.NDArray[np.integer], batch_tokens: int) -> list[npt.NDArray[np.int64]]:
    """Split texts into batches with little padding, the longest first, so that memory runs out early if at all.

    Args:
        lengths: [n] tokens per text.
        batch_tokens: maximum tokens of a batch, padding included; a longer text is a batch by itself.

    Returns:
        Indices into `lengths`; each occurs in exactly one batch.
    """
    return by_length(lengths, batch_tokens, padding=int(batch_tokens * PADDING_SHARE), longest_first=True)


def prefetch(items: Iterator[Item], depth: int = 1) -> Generator[Item, None, None]:
    """Yield the same items, computed up to `depth` ahead in another thread, whose errors are raised here.

    The thread ends when the generator is closed.
    """
    end = object()
    with ThreadPoolExecutor(max_workers=1) as pool:
        pending = deque(pool.submit(next, items, end) for _ in range(depth + 1))
        try:
            while (item := pending.popleft().result()) is not end:
                yield item  # type: ignore[misc]
                pending.append(pool.submit(next, items, end))
        finally:
            for future in pending:
                future.cancel()
