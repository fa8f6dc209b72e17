"""Batches of token sequences of similar length, padded to the longest.

Does not import torch, for processes that run ONNX graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Tokenize = Callable[[Sequence[str]], list[list[int]]]
# Texts per call of the tokenizer. Its lists take 50 times the memory of the arrays, and the more of them there are at
# once, the more time goes to page faults and the garbage collector.
PIECE = 1000


def by_length(
    lengths: Sequence[int] | npt.NDArray[np.integer],
    budget: int,
    *,
    padding: int | None = None,
    longest_first: bool = False,
) -> list[npt.NDArray[np.int64]]:
    """Split texts into batches of similar length; texts of equal length keep their order.

    Args:
        lengths: [n] tokens per text.
        budget: maximum tokens of a batch, padding included; a longer text is a batch by itself.
        padding: maximum padding tokens of a batch; None for no limit.
        longest_first: sort batches, and texts in each, from longest to shortest; by default the reverse.

    Returns:
        Indices into `lengths`; each occurs in exactly one batch.
    """
    numbers = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-numbers if longest_first else numbers, kind="stable")
    ordered: list[int] = numbers[order].tolist()
    batches = []
    start = tokens = 0
    for place, length in enumerate(ordered):
        size = (place - start + 1) * max(ordered[start], length)
        too_sparse = padding is not None and size - tokens - length > padding
        if place > start and (size > budget or too_sparse):
            batches.append(order[start:place])
            start, tokens = place, 0
        tokens += length
    if ordered:
        batches.append(order[start:])
    return batches


@dataclass(frozen=True)
class TokenRows:
    """Token ids of N texts, one after the other in a flat array, so that a batch is padded without a loop over rows.

    Attributes:
        flat: [total] the ids of all texts; it may be mapped from a file.
        lengths: [N] tokens of each text.
        starts: [N] the place of each text's first token in `flat`.
    """

    flat: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int] | npt.NDArray[np.integer]]) -> TokenRows:
        """The texts of a list."""
        lengths = np.fromiter(map(len, rows), np.int32, len(rows))
        return cls.joined(np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), lengths)

    @classmethod
    def tokenized(cls, texts: Sequence[str], tokenize: Tokenize) -> TokenRows:
        """The tokens of texts; `tokenize` gets PIECE of them at a time."""
        pieces = [cls.of(tokenize(texts[start : start + PIECE])) for start in range(0, len(texts), PIECE)]
        none = np.zeros(0, np.int32)
        return cls.joined(
            np.concatenate([none, *(piece.flat for piece in pieces)]),
            np.concatenate([none, *(piece.lengths for piece in pieces)]),
        )

    @classmethod
    def joined(cls, flat: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> TokenRows:
        """Texts that follow each other in `flat` without gaps."""
        return cls(flat, lengths, np.cumsum(lengths, dtype=np.int64) - lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> npt.NDArray[np.int32]:
        """The token ids of one text."""
        return self.flat[self.starts[row] : self.starts[row] + self.lengths[row]]

    def padded(self, rows: npt.NDArray[np.int64], pad: int) -> tuple[Ids, Ids]:
        """Token ids and attention mask of B texts, [B, T] each, padded on the right to the longest."""
        lengths = self.lengths[rows]
        columns = np.arange(lengths.max())
        real = columns < lengths[:, None]
        # Places after the end of a text hold those of the next one; padding replaces them.
        found = self.flat.take(self.starts[rows][:, None] + columns, mode="clip")
        ids = np.full(real.shape, pad, dtype=np.int64)
        np.copyto(ids, found, where=real)
        return ids, real.astype(np.int64)


def padded(rows: Sequence[Sequence[int] | npt.NDArray[np.integer]], pad: int) -> tuple[Ids, Ids]:
    """Token ids and attention mask of a list of B rows, [B, T] each, padded on the right to the longest row."""
    if len(rows) == 1:  # a query: after a graph has run, when nothing is in the caches, many small calls take 0.1 ms
        ids = np.array(rows, dtype=np.int64)
        return ids, np.ones_like(ids)
    return TokenRows.of(rows).padded(np.arange(len(rows)), pad)
