"""Texts whose words are numbers, with a tokenizer and an encoder that need no model."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

# The vector of each number.
TABLE = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))


def tokenize(texts: Iterable[str]) -> list[list[int]]:
    """The numbers of each text."""
    return [[int(word) for word in text.split()] for text in texts]


def mean(ids: Tensor, mask: Tensor) -> Tensor:
    """The mean vector of the numbers of each text: [B, T] -> [B, 4]."""
    return (TABLE[ids] * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
