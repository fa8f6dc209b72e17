"""AdamW as every method uses it."""

from __future__ import annotations

import torch
from torch import nn

from sentcompress.training.settings import Settings


def make_optimizer(model: nn.Module, settings: Settings) -> torch.optim.AdamW:
    """AdamW with weight decay on matrices and tables only, not on biases, LayerNorms and single numbers."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    # Fused: one pass over weights and moments where the plain loop makes a dozen.
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)


def set_dropout(model: nn.Module, rate: float | None) -> None:
    """Put one rate in place of what the checkpoint's configuration says; None changes nothing."""
    if rate is not None:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = rate
