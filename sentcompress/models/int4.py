"""Weights in 4 bits: each block of 32 weights of a row has a scale in float16 and a zero point in 4 bits.

A weight is scale x (code - zero), with code and zero from 0 to 15: 4.625 bits a weight. A block rather than a row has
its own scale, because a row's largest weight would leave few levels for the others: of all-MiniLM-L6-v2 with its
layers in 4 bits, search fidelity on law is 92.3 with blocks of 32 and 87.2 with blocks of 128.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from sentcompress.models.layer_inputs import LayerInputs
from sentcompress.models.weight_formats import BLOCK, is_packable

LEVELS = 15
SMALLEST_SCALE = 1e-7
# Added to the moments' diagonal, as a share of its mean. GPTQ adds 0.01; with more, a sample also helps if it is of
# other text than will be encoded (docs/decisions/0014-int8-graphs.md).
DAMPING = 0.2
# Number of texts that weights are fitted to; search fidelity is the same with 64 and with 400 texts of law.
FITTED_TO = 128


class Blocks(NamedTuple):
    """The codes of a matrix: uint8 [R, C]; float16 scales and uint8 zero points, [R, C / 32]."""

    codes: Tensor
    scales: Tensor
    zeros: Tensor

    def decoded(self) -> Tensor:
        """The weights that the codes stand for, float32 [R, C]."""
        rows, columns = self.codes.shape
        steps = self.codes.view(rows, -1, BLOCK).float() - self.zeros.unsqueeze(2).float()
        return (steps * self.scales.unsqueeze(2).float()).view(rows, columns)


@torch.no_grad()
def blocks_of(weight: Tensor) -> Blocks:
    """The codes nearest to a matrix [R, C]; the same again for the weights that these codes stand for."""
    parts = weight.detach().float().view(weight.shape[0], -1, BLOCK)
    levels = _Levels.of(parts)
    codes = levels.codes(parts).to(torch.uint8).view(weight.shape)
    return Blocks(codes, levels.scale.squeeze(2).to(torch.float16), levels.zero.squeeze(2).to(torch.uint8))


class _Levels(NamedTuple):
    """The range, scale and zero point of blocks: [..., 1] each."""

    low: Tensor
    high: Tensor
    scale: Tensor
    zero: Tensor

    @classmethod
    def of(cls, parts: Tensor) -> _Levels:
        """The levels of blocks [..., BLOCK]."""
        low, high = parts.amin(-1, keepdim=True).clamp_max(0), parts.amax(-1, keepdim=True).clamp_min(0)
        scale = ((high - low) / LEVELS).clamp_min(SMALLEST_SCALE).to(torch.float16).float()
        # A scale below float16's normal numbers is rounded by up to a quarter, so the zero point may be beyond the
        # levels.
        return cls(low, high, scale, torch.round(-low / scale).clamp_(0, LEVELS))

    def codes(self, weights: Tensor) -> Tensor:
        """The codes of weights within the range: [..., N], float32."""
        codes = torch.round(weights / self.scale).add_(self.zero).clamp_(0, LEVELS)
        # Where both ends lie halfway between two levels, both may be rounded inwards, and 14 levels are left; codes of
        # the result would then have another scale.
        return torch.where((weights == self.high) & (self.high > 0), float(LEVELS), codes)


@torch.no_grad()
def fitted(weight: Tensor, moments: Tensor) -> Tensor:
    """Fit weights to a sample, so that rounding them loses less of the products with inputs like those of the sample.

    Columns are rounded one after the other, and the ones that are left make up for the error: GPTQ (Frantar et al.
    2022, https://arxiv.org/abs/2210.17323), with the range of a block taken when its first column is reached. Each
    column is returned as it is just before it is rounded, because this is a better start for training than the rounded
    weights (docs/decisions/0014-int8-graphs.md).

    Args:
        weight: [R, C].
        moments: [C, C] second moments of the inputs, summed or averaged over the sample.

    Returns:
        [R, C] float32; if `weight` is rounded already, the same codes as before.
    """
    left = weight.detach().float().clone()
    if not 0 < float(moments.diagonal().mean()) < math.inf:  # all inputs are zero, or some are NaN or infinite
        return left
    spread = _spread(moments).to(weight.device)
    found = torch.empty_like(left)
    for start in range(0, left.shape[1], BLOCK):
        end = start + BLOCK
        part = left[:, start:end]
        levels = _Levels.of(part)
        # The ends stay, so that the range does.
        ends = torch.where((part == levels.low) | (part == levels.high), part, torch.nan)
        errors = torch.empty_like(part)
        for place in range(BLOCK):
            at = start + place
            column, end_weight = left[:, at : at + 1], ends[:, place : place + 1]
            kept = torch.where(end_weight.isnan(), column.clamp(levels.low, levels.high), end_weight)
            rounded = (levels.codes(kept) - levels.zero) * levels.scale
            error = (column - rounded) / spread[at, at]
            found[:, at : at + 1], errors[:, place : place + 1] = kept, error
            left[:, at:end] -= error * spread[at, at:end]
        left[:, end:] -= errors @ spread[start:end, end:]
    return found


def _spread(moments: Tensor) -> Tensor:
    """How errors of columns are spread over later ones: U, upper triangular, with U' U the inverse of the moments."""
    moments = moments.double().cpu()
    moments = moments + DAMPING * moments.diagonal().mean() * torch.eye(len(moments), dtype=torch.float64)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(moments))
    spread: Tensor = torch.linalg.cholesky(inverse, upper=True)
    return spread.float()


def packable_weights(model: nn.Module) -> list[nn.Parameter]:
    """The weights of linear layers and tables that an export stores in 4 bits."""
    matrices = {id(module.weight) for module in model.modules() if isinstance(module, nn.Linear | nn.Embedding)}
    return [weight for weight in model.parameters() if id(weight) in matrices and is_packable(tuple(weight.shape))]


class RoundedWeights:
    """Computes with weights rounded to 4 bits while an optimizer changes the exact ones (quantization-aware training).

    The gradient with respect to the rounded weights is used for the exact ones, as if rounding were the identity
    (straight-through estimator; Bengio et al. 2013, https://arxiv.org/abs/1308.3432).

    Args:
        models: the modules whose matrices and tables are rounded.
    """

    def __init__(self, *models: nn.Module) -> None:
        self._weights = list(dict.fromkeys(weight for model in models for weight in packable_weights(model)))
        self.layers = [
            layer
            for layer in dict.fromkeys(module for model in models for module in model.modules())
            if isinstance(layer, nn.Linear) and is_packable(tuple(layer.weight.shape))
        ]

    @torch.no_grad()
    def fit(self, inputs: LayerInputs) -> None:
        """Replace weights by fitted ones, in place; those without inputs stay as they are.

        Args:
            inputs: the inputs of `layers` on a sample.
        """
        for layer, count, products in zip(inputs.layers, inputs.counts, inputs.products, strict=True):
            if count:
                layer.weight.copy_(fitted(layer.weight, products))

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Use the rounded weights inside the block; restore the exact ones afterwards."""
        exact: list[Tensor] = []
        try:
            with torch.no_grad():
                for weight in self._weights:
                    exact.append(weight.detach().clone())
                    weight.copy_(blocks_of(weight).decoded())
            yield
        finally:
            with torch.no_grad():
                for weight, value in zip(self._weights, exact, strict=False):
                    weight.copy_(value)
