"""Pooling of token states into one vector per sentence, in the modes of saved models."""

from __future__ import annotations

import torch
from torch import Tensor

MODES = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")


def pool(states: Tensor, mask: Tensor, mode: str) -> Tensor:
    """Pool token states.

    Args:
        states: [B, T, D] last hidden states.
        mask: [B, T], 1 for tokens, 0 for padding (on either side).
        mode: one of MODES.

    Returns:
        [B, D].
    """
    if mode == "cls":
        return _token(states, mask.to(torch.int32).argmax(dim=1))
    if mode == "lasttoken":
        return _token(states, mask.shape[1] - 1 - mask.flip(1).to(torch.int32).argmax(dim=1))
    weights = mask.unsqueeze(-1).to(states.dtype)
    if mode == "max":
        return states.masked_fill(weights == 0, float("-inf")).max(dim=1).values
    if mode == "weightedmean":
        # 1 for the first token, wherever the padding is
        weights = weights * mask.cumsum(dim=1).unsqueeze(-1)
    total = (states * weights).sum(dim=1)
    count = weights.sum(dim=1).clamp(min=1e-9)
    if mode == "mean_sqrt_len_tokens":
        return total / count.sqrt()
    return total / count


def _token(states: Tensor, index: Tensor) -> Tensor:
    """One token's state from each row: [B, T, D], [B] -> [B, D]. A gather, since exporters fix the size of a range."""
    return states.gather(1, index.view(-1, 1, 1).expand(-1, 1, states.shape[2])).squeeze(1)
