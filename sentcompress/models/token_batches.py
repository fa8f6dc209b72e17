"""Batches of token sequences of similar length, padded to the longest.

Does not import torch, for processes that run ONNX graphs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


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


def padded(rows: Sequence[Sequence[int] | npt.NDArray[np.integer]], pad: int) -> tuple[Ids, Ids]:
    """Token ids and attention mask of B rows, [B, T] each, padded on the right to the longest row."""
    ids = np.full((len(rows), max(map(len, rows))), pad, dtype=np.int64)
    mask = np.zeros_like(ids)
    for line, row in enumerate(rows):
        ids[line, : len(row)] = row
        mask[line, : len(row)] = 1
    return ids, mask
