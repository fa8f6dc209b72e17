"""The number format of training: what was asked for, else what the trial finds."""

from __future__ import annotations

import pytest
import torch

from sentcompress.models.dtype_trial import Speedup
from sentcompress.training import precision
from sentcompress.training.precision import choose_dtype

CPU = torch.device("cpu")


def test_what_is_asked_for_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(precision, "measure")
    assert choose_dtype("bfloat16", CPU, None, lambda: torch.zeros(1)) == ("bfloat16", "asked for")


@pytest.mark.parametrize(("speedup", "expected"), [(1.7, "bfloat16"), (1.1, "float32")])
def test_auto_follows_the_trial(monkeypatch: pytest.MonkeyPatch, speedup: float, expected: str) -> None:
    monkeypatch.setattr(precision, "measure", lambda *_: Speedup([speedup] * 6))
    dtype, reason = choose_dtype("auto", CPU, None, lambda: torch.zeros(1))
    assert dtype == expected
    assert reason.startswith(f"measured: bfloat16 trains {speedup:.2f} times as fast as float32")


def test_the_trial_goes_forward_and_back_in_both_formats() -> None:
    layer = torch.nn.Linear(8, 8)
    layer.config = type("Config", (), {"_attn_implementation": "sdpa"})()  # type: ignore[assignment]
    seen: set[torch.dtype] = set()

    def forward() -> torch.Tensor:
        output = layer(torch.ones(2, 8))
        seen.add(output.dtype)
        return torch.as_tensor(output)

    assert choose_dtype("auto", CPU, layer, forward)[0] in ("float32", "bfloat16")
    assert seen == {torch.float32, torch.bfloat16}
    assert layer.weight.grad is not None
    assert layer.config._attn_implementation == "sdpa"
