"""The number format of training: what was asked for, else what the trial finds."""

from __future__ import annotations

import pytest
import torch

from sentcompress.models import dtype_trial
from sentcompress.models.dtype_trial import Speedup
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.training.precision import training_dtype

CPU = torch.device("cpu")


def test_what_is_asked_for_is_not_measured(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dtype_trial, "measure")
    assert training_dtype("bfloat16", CPU, encoder, lambda: torch.zeros(1)) == ("bfloat16", "requested")


@pytest.mark.parametrize(("speedup", "expected"), [(1.7, "bfloat16"), (1.1, "float32")])
def test_auto_follows_the_trial(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch, speedup: float, expected: str
) -> None:
    monkeypatch.setattr(dtype_trial, "measure", lambda *_: Speedup([speedup] * 6))
    dtype, reason = training_dtype("auto", CPU, encoder, lambda: torch.zeros(1))
    assert dtype == expected
    assert reason.startswith(f"measured: bfloat16 trains {speedup:.2f} times as fast as float32")


def test_the_trial_goes_forward_and_back_in_both_formats(encoder: Encoder) -> None:
    ids = torch.tensor([[2, 7, 8, 3]])
    attention = encoder.config._attn_implementation
    seen: set[tuple[torch.dtype, str]] = set()

    def forward() -> torch.Tensor:
        output = encoder.embed(ids, torch.ones_like(ids))
        seen.add((output.dtype, encoder.config._attn_implementation))
        return torch.as_tensor(output)

    encoder = encoder.with_dense([Dense(32, 8)], normalize=True)
    assert training_dtype("auto", CPU, encoder, forward)[0] in ("float32", "bfloat16")
    assert seen == {(torch.float32, attention), (torch.bfloat16, "eager")}
    assert encoder.dense_layers[0].linear.weight.grad is not None
    assert encoder.config._attn_implementation == attention
