"""Losses over the cosines between two batches or within a batch."""

from __future__ import annotations

import torch
from torch import Tensor

from sentcompress.methods.base import unit


def contrast(
    queries: Tensor, keys: Tensor, scale: Tensor | float, *, own: Tensor | None = None, cosine: bool = True
) -> Tensor:
    """InfoNCE: mean over i of -log( exp(scale cos(q_i, k_i)) / sum over all j of exp(scale cos(q_i, k_j)) ).

    Args:
        queries: [B, K].
        keys: [B + R, K]; row i is the positive of query i, the last R rows are negatives for all queries.
        scale: 1 / temperature.
        own: [B, N, K], negatives of one query each, added to its sum.
        cosine: compare by cosine; otherwise by the inner product.

    Returns:
        A scalar.
    """
    if cosine:
        queries, keys, own = unit(queries), unit(keys), None if own is None else unit(own)
    logits = (queries @ keys.T) * scale
    positive = logits.diagonal()
    if own is not None:
        logits = torch.cat([logits, (own @ queries.unsqueeze(2)).squeeze(2) * scale], dim=1)
    return (logits.logsumexp(dim=1) - positive).mean()


def relation_error(first: Tensor, second: Tensor, *, absolute: bool = False) -> Tensor:
    """Mean squared difference between the cosine matrices of two sets of vectors for the same sentences.

    mean over i != j of (cos(a_i, a_j) - cos(b_i, b_j))^2; 0 for a single sentence. The widths may differ.

    Args:
        first: [B, D_1].
        second: [B, D_2].
        absolute: the mean absolute difference instead.

    Returns:
        A scalar.
    """
    a, b = unit(first), unit(second)
    difference = a @ a.T - b @ b.T
    errors = difference.abs() if absolute else difference.square()
    pairs = len(first) * (len(first) - 1)
    return (errors.sum() - errors.diagonal().sum()) / max(pairs, 1)
