"""Narrower layers: the neurons of each feed-forward network that carry most."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from sentcompress.errors import InputError

# Architecture -> the two linear layers of a layer's feed-forward network, and what its configuration calls the width.
BERT_LIKE = ("intermediate.dense", "output.dense", "intermediate_size")
NETWORKS = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra", "mpnet"), BERT_LIKE),
    "distilbert": ("ffn.lin1", "ffn.lin2", "hidden_dim"),
}


def narrow_feed_forward(transformer: Any, layers: Iterable[nn.Module], size: int, label: str) -> None:
    """Leave `size` neurons in the feed-forward network of every layer, in place.

    A neuron weighs as much as the norm of what it reads times the norm of what it writes; the heaviest stay, in their
    order. Nothing else of a layer changes, so the rest of the network reads and writes the same space.

    Args:
        layers: those of `transformer`.
        label: the model's name, for errors.

    Raises:
        InputError: for an architecture that is not known, or a size above the network's own.
    """
    kind = transformer.config.model_type
    if kind not in NETWORKS:
        raise InputError(
            f"the feed-forward networks of {label} cannot be narrowed: its architecture is {kind!r}",
            f"--feed-forward works with {', '.join(NETWORKS)}",
        )
    first, second, setting = NETWORKS[kind]
    width = int(getattr(transformer.config, setting))
    if size > width:
        raise InputError(f"--feed-forward {size}: {label} has {width} neurons in a layer", f"choose 1 to {width}")
    for layer in layers:
        reads, writes = layer.get_submodule(first), layer.get_submodule(second)
        assert isinstance(reads, nn.Linear)
        assert isinstance(writes, nn.Linear)
        weight = reads.weight.detach().norm(dim=1) * writes.weight.detach().norm(dim=0)
        kept = weight.argsort(descending=True, stable=True)[:size].sort().values
        with torch.no_grad():
            reads.weight = nn.Parameter(reads.weight[kept].clone())
            reads.bias = nn.Parameter(reads.bias[kept].clone())
            writes.weight = nn.Parameter(writes.weight[:, kept].clone())
        reads.out_features = writes.in_features = size
    setattr(transformer.config, setting, size)
