"""In which number format the encoder computes while it trains, and with which attention."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

# A gain below this is not worth the lost digits.
WORTHWHILE = 1.15
ATTEMPTS = 4


@contextmanager
def computing_in(dtype: str, device: torch.device, transformer: Any) -> Iterator[None]:
    """Forward passes of `transformer` in this block compute in `dtype`, float32 or bfloat16."""
    if dtype == "float32":
        yield
        return
    # On a CPU the backward pass of fused attention takes more time in bfloat16 than all the rest of a step. Written
    # out, attention takes a tenth of that: steps are 1.5 to 2 times as fast, the more so the shorter the sentences.
    replaced = device.type == "cpu" and transformer.config._attn_implementation == "sdpa"
    if replaced:
        transformer.config._attn_implementation = "eager"
    try:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            yield
    finally:
        if replaced:
            transformer.config._attn_implementation = "sdpa"


def choose_dtype(asked: str, device: torch.device, transformer: Any, forward: Callable[[], Tensor]) -> tuple[str, str]:
    """float32 or bfloat16, and why.

    Args:
        asked: `auto` or the answer itself.
        transformer: what `forward` runs.
        forward: a forward pass over a typical batch, for the measurement on a CPU: some machines are faster with
            bfloat16, on others it is many times slower.
    """
    if asked != "auto":
        return asked, "asked for"
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bfloat16", "the GPU has it"
        return "float32", "the GPU has no bfloat16"
    if device.type != "cpu":
        return "float32", f"the default on {device.type}"
    slow, fast = _seconds(device, transformer, forward)
    gain = slow / fast
    return ("bfloat16" if gain > WORTHWHILE else "float32"), f"measured: bfloat16 trains {gain:.1f} times as fast"


def _seconds(device: torch.device, transformer: Any, forward: Callable[[], Tensor]) -> tuple[float, float]:
    """The best times of a forward and backward pass in float32 and in bfloat16.

    They take turns, so that other work on the machine hits both, and the first pass of each only warms up.
    """
    best = {"float32": float("inf"), "bfloat16": float("inf")}
    for attempt in range(1 + ATTEMPTS):
        for dtype in best:
            started = time.perf_counter()
            with computing_in(dtype, device, transformer):
                output = forward()
            output.float().sum().backward()  # type: ignore[no-untyped-call]
            if attempt:
                best[dtype] = min(best[dtype], time.perf_counter() - started)
    return best["float32"], best["bfloat16"]
