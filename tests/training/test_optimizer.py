"""AdamW as it is asked for, and dropout."""

from __future__ import annotations

from pathlib import Path

import torch
from tiny_models import load_model, make_t5
from transformers import ModernBertConfig, ModernBertModel

from sentcompress.commands.training import TrainingOptions
from sentcompress.methods.ckd import CKD
from sentcompress.training.optimizer import make_optimizer, set_dropout
from sentcompress.training.settings import Settings


def test_the_recipe_s_numbers_reach_the_optimizer() -> None:
    settings = Settings.of(CKD.recipe, TrainingOptions(weight_decay=0.03))
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    optimizer = make_optimizer(module, settings)
    matrices, rest = optimizer.param_groups
    for group in (matrices, rest):
        assert group["betas"] == (0.9, 0.98)  # DistilCSE's, not the library's own
        assert group["lr"] == settings.lr
    assert [p.shape for p in matrices["params"]] == [(2, 3)]
    assert len(rest["params"]) == 3
    assert (matrices["weight_decay"], rest["weight_decay"]) == (0.03, 0.0)


def test_dropout_is_set_in_attention_too(tmp_path: Path) -> None:
    """T5's has a number, and no layer for it."""
    encoder = load_model(make_t5(tmp_path)).train()
    ids = torch.tensor(encoder.tokenize(["the cat runs"]))
    for rate, same in ((0.5, False), (0.0, True)):
        set_dropout(encoder, rate)
        for module in encoder.modules():
            if isinstance(module, torch.nn.Dropout):
                assert module.p == rate
                module.p = 0.0
        first, again = (encoder.embed(ids, torch.ones_like(ids)) for _ in range(2))
        assert torch.equal(first, again) == same


def test_dropout_is_set_where_a_rate_of_0_left_no_module_for_it() -> None:
    sizes = {"vocab_size": 30, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2}
    config = ModernBertConfig(**sizes, num_attention_heads=2, attention_dropout=0.0, pad_token_id=0)
    model = ModernBertModel(config)
    for rate in (0.5, 0.0):
        set_dropout(model, rate)
        assert [layer.attn.out_drop.p for layer in model.layers] == [rate, rate]
    set_dropout(model, None)
    assert [layer.attn.out_drop.p for layer in model.layers] == [0.0, 0.0]
