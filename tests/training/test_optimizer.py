"""AdamW as it is asked for."""

from __future__ import annotations

import torch

from sentcompress.commands.training import TrainingOptions
from sentcompress.methods.ckd import CKD
from sentcompress.training.optimizer import make_optimizer
from sentcompress.training.settings import Settings


def test_the_recipe_s_numbers_reach_the_optimizer() -> None:
    settings = Settings.of(CKD.recipe, TrainingOptions(weight_decay=0.03))
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    module[0].weight.requires_grad_(True)
    optimizer = make_optimizer(module, settings)
    matrices, rest = optimizer.param_groups
    for group in (matrices, rest):
        assert group["betas"] == (0.9, 0.98)  # DistilCSE's, not the library's own
        assert group["lr"] == settings.lr
    assert [p.shape for p in matrices["params"]] == [(2, 3)]
    assert len(rest["params"]) == 3
    assert (matrices["weight_decay"], rest["weight_decay"]) == (0.03, 0.0)
