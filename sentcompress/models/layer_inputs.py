"""Sums over the inputs of linear layers, for the tokens of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class LayerInputs:
    """Sums over the inputs of linear layers.

    Attributes:
        counts: the inputs of each layer: tokens, or texts if it comes after the pooling.
        totals: [C] their sum, float64.
        products: [C, C] the sum of their products x x', float64.
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = layers
        self.counts = [0 for _ in layers]
        self.totals = [torch.zeros(layer.in_features, dtype=torch.float64) for layer in layers]
        self.products = [torch.zeros(layer.in_features, layer.in_features, dtype=torch.float64) for layer in layers]
        self._seen: list[list[Tensor]] = [[] for _ in layers]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record the inputs of the layers inside the block; call `add` after each batch."""
        hooks = [layer.register_forward_pre_hook(self._hook(place)) for place, layer in enumerate(self.layers)]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def add(self, mask: Tensor) -> None:
        """Add the inputs of a batch.

        Args:
            mask: [B, T] bool, false for padding, which is left out.
        """
        for place, seen in enumerate(self._seen):
            for inputs in seen:
                # Pooled texts [B, D] are not tokens, even if D is the length of the batch.
                of_tokens = inputs.dim() > 2 and inputs.shape[:2] == mask.shape
                rows = inputs[mask] if of_tokens else inputs.flatten(0, -2)
                self.counts[place] += len(rows)
                self.totals[place] += rows.double().sum(0).cpu()
                self.products[place] += (rows.T @ rows).double().cpu()
            seen.clear()

    def _hook(self, place: int) -> Any:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            self._seen[place].append(inputs[0].detach())

        return hook
