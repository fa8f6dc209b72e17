"""How dtype and batch size are decided."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from sentcompress.encoding.compute_plan import ComputePlan, make_plan, prepared
from sentcompress.errors import UsageError
from sentcompress.models import dtype_trial
from sentcompress.models.dtype_trial import Speedup
from sentcompress.models.encoder import Encoder

CPU = torch.device("cpu")


@pytest.mark.parametrize(("speedup", "expected"), [(2.0, "bfloat16"), (1.05, "float32"), (0.03, "float32")])
def test_auto_follows_the_measurement(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch, speedup: float, expected: str
) -> None:
    monkeypatch.setattr(dtype_trial, "measure", lambda *_: Speedup([speedup] * 6))
    plan = make_plan(encoder, CPU)
    assert plan.dtype == expected
    assert plan.reason.startswith(f"measured: bfloat16 encodes {speedup:.2f} times as fast")


def test_auto_really_measures(encoder: Encoder) -> None:
    encoder.text = dataclasses.replace(encoder.text, max_length=8)
    assert make_plan(encoder, CPU).reason.startswith("measured: bfloat16 encodes ")


def test_what_is_asked_for_is_not_measured(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dtype_trial, "measure")
    assert make_plan(encoder, CPU, "bfloat16", 77) == ComputePlan("bfloat16", "requested", 77)


def test_a_batch_needs_tokens(encoder: Encoder) -> None:
    with pytest.raises(UsageError, match="`batch_tokens`"):
        make_plan(encoder, CPU, "float32", 0)


def test_a_plan_survives_its_file() -> None:
    plan = ComputePlan("bfloat16", "because", 12)
    assert ComputePlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_encoder_itself_is_left_alone(encoder: Encoder, dtype: str) -> None:
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    kinds = [type(layer) for layer in encoder.modules()]
    encoder.train()
    clone = prepared(encoder, CPU, dtype)
    assert not clone.training
    assert encoder.training
    assert [type(layer) for layer in encoder.modules()] == kinds
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert clone.tokenizer is encoder.tokenizer
    shared = clone.transformer.get_input_embeddings().weight is encoder.transformer.get_input_embeddings().weight  # type: ignore[operator]
    assert shared == (dtype == "float32")
