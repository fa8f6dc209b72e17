"""In which number format the encoder computes while it trains."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

# A gain below this is not worth the lost digits.
WORTHWHILE = 1.15


def autocast(device: torch.device, dtype: str) -> AbstractContextManager[object]:
    """The block in which a forward pass computes in `dtype`, float32 or bfloat16."""
    return torch.autocast(device.type, dtype=torch.bfloat16) if dtype == "bfloat16" else nullcontext()


def choose_dtype(asked: str, device: torch.device, forward: Callable[[], Tensor]) -> tuple[str, str]:
    """float32 or bfloat16, and why.

    Args:
        asked: `auto` or the answer itself.
        forward: a forward pass over a typical batch, for the measurement on a CPU: half of the machines are
            faster with bfloat16, on the others it is many times slower.
    """
    if asked != "auto":
        return asked, "asked for"
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bfloat16", "the GPU has it"
        return "float32", "the GPU has no bfloat16"
    if device.type != "cpu":
        return "float32", f"the default on {device.type}"
    slow, fast = (_seconds(device, dtype, forward) for dtype in ("float32", "bfloat16"))
    gain = slow / fast
    return ("bfloat16" if gain > WORTHWHILE else "float32"), f"measured: bfloat16 trains {gain:.1f} times as fast"


def _seconds(device: torch.device, dtype: str, forward: Callable[[], Tensor]) -> float:
    """The best of three forward and backward passes, after one to warm up."""
    best = float("inf")
    for attempt in range(4):
        started = time.perf_counter()
        with autocast(device, dtype):
            output = forward()
        output.float().sum().backward()
        if attempt:
            best = min(best, time.perf_counter() - started)
    return best
