"""Devices and number formats by name."""

from __future__ import annotations

import pytest
import torch

from sentcompress.errors import InputError, UsageError
from sentcompress.models.devices import dtype_candidates, pick_device

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_auto_takes_the_best_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pick_device() == CPU
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device("auto").type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto").type == "cuda"
    assert pick_device("cpu") == CPU


def test_attention_on_cuda_is_not_planned_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuDNN would plan for every new number and length of texts, which made training 13 times as slow on an H200."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    try:
        torch.backends.cuda.enable_cudnn_sdp(True)
        pick_device("cuda")
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        # Others are left.
        assert torch.backends.cuda.mem_efficient_sdp_enabled()
        assert torch.backends.cuda.flash_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(InputError, match=f"no {name} device") as caught:
        pick_device(name)
    assert "`device` auto" in str(caught.value.hint)


def test_unknown_names_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="gpu"):
        pick_device("gpu")
    with pytest.raises(UsageError, match="bf16") as caught:
        dtype_candidates("bf16", CPU)
    assert "bfloat16" in str(caught.value.hint)


def test_float16_is_refused_on_a_cpu_only() -> None:
    with pytest.raises(UsageError, match="float16"):
        dtype_candidates("float16", CPU)
    assert dtype_candidates("float16", CUDA) == ("float16",)


def test_auto_measures_on_a_cpu_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dtype_candidates("auto", CPU) == ("float32", "bfloat16")
    assert dtype_candidates("auto", torch.device("mps")) == ("float32",)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
    assert dtype_candidates("auto", CUDA) == ("bfloat16",)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    assert dtype_candidates("auto", CUDA) == ("float32",)
