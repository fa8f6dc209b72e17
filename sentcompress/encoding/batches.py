"""From a stream of texts to batches of token ids: windows, duplicates, lengths, token budgets, prefetching.

Without torch, for processes that run ONNX graphs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from sentcompress.models.token_batches import by_length

# Sentences of like length are looked for within a window. These bounds are what keeps the memory constant: two
# windows of token ids (4 bytes each) and one of vectors (D x 4 bytes a sentence) are held at a time.
WINDOW_SENTENCES = 10_000
WINDOW_CHARACTERS = 4_000_000
# Starting one more batch costs about as much as this share of a full one; more padding than that is not worth it.
PADDING_SHARE = 1 / 16

Item = TypeVar("Item")


@dataclass(frozen=True)
class TokenizedWindow:
    """Texts that are sorted and batched together.

    Attributes:
        tokens: token ids of each distinct text.
        places: [n], for each text of the window, in order, its index in `tokens`.
    """

    tokens: list[npt.NDArray[np.int32]]
    places: npt.NDArray[np.int64]


def windows(
    chunks: Iterable[Sequence[str]], sentences: int | None = None, characters: int | None = None
) -> Iterator[list[str]]:
    """Regroup chunks of any size into windows of bounded size, in order.

    Args:
        chunks: the texts, a few at a time.
        sentences, characters: a window ends where it has reached one of them; by default WINDOW_SENTENCES and
            WINDOW_CHARACTERS.
    """
    sentences, characters = sentences or WINDOW_SENTENCES, characters or WINDOW_CHARACTERS
    window: list[str] = []
    size = 0
    for chunk in chunks:
        for text in chunk:
            window.append(text)
            size += len(text)
            if len(window) == sentences or size >= characters:
                yield window
                window, size = [], 0
    if window:
        yield window


def tokenized(
    texts: Sequence[str], tokenize: Callable[[Sequence[str]], list[list[int]]], padding: int
) -> TokenizedWindow:
    """Tokenise each distinct text once; `padding` stands for a text without tokens."""
    index: dict[str, int] = {}
    places = np.fromiter((index.setdefault(text, len(index)) for text in texts), np.int64, len(texts))
    # A tokenizer without special tokens has nothing for an empty text; a model needs one token at least.
    tokens = [np.array(ids or [padding], dtype=np.int32) for ids in tokenize(list(index))]
    return TokenizedWindow(tokens, places)


def plan_batches(lengths: Sequence[int] | npt.NDArray[np.integer], batch_tokens: int) -> list[npt.NDArray[np.int64]]:
    """Split texts into batches with next to no padding, the longest first (if memory runs out, it does so at once).

    Args:
        lengths: [n] numbers of tokens.
        batch_tokens: the budget of a batch, padding included; a longer text is a batch of its own.

    Returns:
        Indices into `lengths`; each occurs in exactly one batch.
    """
    return by_length(lengths, batch_tokens, padding=int(batch_tokens * PADDING_SHARE), longest_first=True)


def prefetch(items: Iterator[Item], depth: int = 1) -> Generator[Item, None, None]:
    """The same items, made by another thread up to `depth` before they are asked for; its errors reach the reader.

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
