"""From a stream of texts to batches of token ids: windows, duplicates, lengths, token budgets, work ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # so that what runs ONNX graphs can plan batches without loading torch
    from sentcompress.models.encoder import Encoder

# Sentences of like length are looked for within a window. These bounds are what keeps the memory constant: two
# windows of token ids (4 bytes each) and one of vectors (D x 4 bytes a sentence) are held at a time.
WINDOW_SENTENCES = 10_000
WINDOW_CHARACTERS = 4_000_000
# Starting one more batch costs about as much as this share of a full one; more padding than that is not worth it.
PADDING_SHARE = 1 / 16

Item = TypeVar("Item")


@dataclass(frozen=True)
class Window:
    """Texts that are sorted and batched together.

    Attributes:
        tokens: token ids of each distinct text.
        places: [n], for each text of the window, in order, its index in `tokens`.
    """

    tokens: list[npt.NDArray[np.int32]]
    places: npt.NDArray[np.int64]


def windows(chunks: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Regroup chunks of any size into windows of bounded size, in order."""
    window: list[str] = []
    characters = 0
    for chunk in chunks:
        for text in chunk:
            window.append(text)
            characters += len(text)
            if len(window) == WINDOW_SENTENCES or characters >= WINDOW_CHARACTERS:
                yield window
                window, characters = [], 0
    if window:
        yield window


def tokenized(encoder: Encoder, texts: Sequence[str]) -> Window:
    """Tokenise each distinct text once."""
    index: dict[str, int] = {}
    places = np.fromiter((index.setdefault(text, len(index)) for text in texts), np.int64, len(texts))
    # A tokenizer without special tokens has nothing for an empty text; a model needs one token at least.
    ids = ([*found] or [_padding(encoder)] for found in encoder.tokenize(list(index)))
    return Window([np.array(found, dtype=np.int32) for found in ids], places)


def plan_batches(lengths: npt.NDArray[np.int64], batch_tokens: int) -> list[npt.NDArray[np.int64]]:
    """Split texts into batches of like length, the longest first (if memory runs out, it does so at once).

    A batch holds at most `batch_tokens` tokens, padding included, and next to no padding; a text that is longer
    than that makes a batch of its own.

    Args:
        lengths: [n] numbers of tokens.
        batch_tokens: the budget.

    Returns:
        Indices into `lengths`; each occurs in exactly one batch.
    """
    order = np.argsort(-lengths, kind="stable")
    allowed = int(batch_tokens * PADDING_SHARE)
    batches = []
    start, padding = 0, 0
    for position, index in enumerate(order):
        width = int(lengths[order[start]])
        gap = width - int(lengths[index])
        rows = position - start
        if rows and ((rows + 1) * width > batch_tokens or padding + gap > allowed):
            batches.append(order[start:position])
            start, padding, gap = position, 0, 0
        padding += gap
    if len(order):
        batches.append(order[start:])
    return batches


def ahead(items: Iterator[Item], depth: int = 1) -> Iterator[Item]:
    """The same items, made by another thread up to `depth` before they are asked for; errors come through."""
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


def _padding(encoder: Encoder) -> int:
    return int(encoder.tokenizer.pad_token_id or 0)
