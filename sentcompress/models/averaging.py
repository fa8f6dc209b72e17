"""Weight averaging of models that were trained from the same start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.token_weights import LEAST

TOKEN_WEIGHTS = "token_weights"


def average(encoders: Sequence[Encoder], labels: Sequence[str], shares: Sequence[float]) -> float:
    """Replace the first model's weights with the weighted mean of all models' weights.

    Wortsman et al. 2022, "Model soups" (several models trained from one start) and "Robust fine-tuning of zero-shot
    models" (the start and its fine-tuned version). The sum is computed in float64.

    Args:
        encoders: models that differ only in their weights; only the first is changed. It can occur several times.
        labels: their names, for errors.
        shares: the weight of each model; they add up to one.

    Returns:
        The smallest cosine between the weights of the first model, as one vector, and those of another; near one for
        models trained from the same start.

    Raises:
        InputError: if the models differ in anything except their weights.
    """
    first = encoders[0]
    for other, label in zip(encoders[1:], labels[1:], strict=True):
        check_same_make(first, other, labels[0], label)
    # Not `state_dict`: it lists a tensor that two modules share (T5's token table) twice, which would average it twice.
    states = [{**dict(encoder.named_parameters()), **dict(encoder.named_buffers())} for encoder in encoders]
    floating = [name for name, value in states[0].items() if value.is_floating_point()]
    products = torch.zeros(3, len(encoders), dtype=torch.float64)
    with torch.no_grad():
        for name in floating:
            tensors = [state[name].double() for state in states]
            if name != TOKEN_WEIGHTS:  # not trained, and large compared with a small model's weights
                products += torch.stack([_products(tensors[0], tensor) for tensor in tensors], dim=1)
            if all(torch.equal(tensors[0], tensor) for tensor in tensors[1:]):
                continue  # with the signs of zeros, so that an average of copies has their digest
            mean = sum((share * tensor for share, tensor in zip(shares, tensors, strict=True)), torch.zeros(()))
            # Negative shares could make the weight of a token negative.
            states[0][name].copy_(mean.clamp(min=LEAST) if name == TOKEN_WEIGHTS else mean)
    between, own, theirs = products
    return float((between / (own * theirs).sqrt().clamp_min(math.ulp(0.0))).min())


def _products(one: Tensor, other: Tensor) -> Tensor:
    return torch.stack([(one * other).sum(), one.square().sum(), other.square().sum()])


def check_same_make(one: Encoder, other: Encoder, name: str, other_name: str) -> None:
    """Raise InputError if two models differ in anything except their weights."""
    ours, theirs = _make(one), _make(other)
    for what in ours:
        if ours[what] != theirs[what]:
            raise InputError(
                f"{name} and {other_name} differ in their {what}",
                "models can be averaged only if they differ in nothing except their weights",
            )


def _make(encoder: Encoder) -> dict[str, Any]:
    dense = [layer.activation_name for layer in encoder.dense if isinstance(layer, Dense)]
    return {
        "token weights: only one has them": encoder.token_weights is not None,
        "architecture": encoder.make(),
        "shapes": {name: value.shape for name, value in encoder.state_dict().items()},
        "tokens": encoder.tokenizer.get_vocab(),
        "pooling": (encoder.pooling, dense, encoder.normalize),
        "text settings": (encoder.text.lower_case, encoder.text.prompt),
    }
