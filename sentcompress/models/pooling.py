"""From token states to one vector a sentence, in the ways that saved models ask for."""

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
        first = mask.to(torch.int8).argmax(dim=1)
        return states[torch.arange(len(states), device=states.device), first]
    if mode == "lasttoken":
        last = mask.shape[1] - 1 - mask.flip(1).to(torch.int8).argmax(dim=1)
        return states[torch.arange(len(states), device=states.device), last]
    weights = mask.unsqueeze(-1).to(states.dtype)
    if mode == "max":
        return states.masked_fill(weights == 0, float("-inf")).max(dim=1).values
    if mode == "weightedmean":
        positions = torch.arange(1, mask.shape[1] + 1, device=states.device, dtype=states.dtype)
        weights = weights * positions.view(1, -1, 1)
    total = (states * weights).sum(dim=1)
    count = weights.sum(dim=1).clamp(min=1e-9)
    if mode == "mean_sqrt_len_tokens":
        return total / count.sqrt()
    return total / count
