"""Losses over the cosines between two batches or within a batch."""

from __future__ import annotations

from torch import Tensor

from sentcompress.methods.base import unit


def contrast(queries: Tensor, keys: Tensor, scale: Tensor | float) -> Tensor:
    """InfoNCE: mean over i of -log( exp(scale cos(q_i, k_i)) / sum over all j of exp(scale cos(q_i, k_j)) ).

    Args:
        queries: [B, K].
        keys: [B + R, K]; row i is the positive of query i, the last R rows are negatives for all queries.
        scale: 1 / temperature.

    Returns:
        A scalar.
    """
    logits = (unit(queries) @ unit(keys).T) * scale
    return (logits.logsumexp(dim=1) - logits.diagonal()).mean()


def relation_error(first: Tensor, second: Tensor) -> Tensor:
    """Mean squared difference between the cosine matrices of two sets of vectors for the same sentences.

    mean over i != j of (cos(a_i, a_j) - cos(b_i, b_j))^2; 0 for a single sentence. The widths may differ.

    Args:
        first: [B, D_1].
        second: [B, D_2].

    Returns:
        A scalar.
    """
    a, b = unit(first), unit(second)
    squares = (a @ a.T - b @ b.T).square()
    pairs = len(first) * (len(first) - 1)
    return (squares.sum() - squares.diagonal().sum()) / max(pairs, 1)
