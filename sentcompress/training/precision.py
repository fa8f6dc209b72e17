"""In which number format the encoder computes while it trains, and with which attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from sentcompress.models.dtype_trial import measure


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
        forward: a forward pass over some sentences, for the measurement on a CPU: some machines are faster with
            bfloat16, on others it is many times slower. It runs several times, on one thread.
    """
    if asked != "auto":
        return asked, "asked for"
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bfloat16", "the GPU has it"
        return "float32", "the GPU has no bfloat16"
    if device.type != "cpu":
        return "float32", f"the default on {device.type}"

    def step(dtype: str) -> None:
        with computing_in(dtype, device, transformer):
            output = forward()
        output.float().sum().backward()  # type: ignore[no-untyped-call]

    found = measure(lambda: step("float32"), lambda: step("bfloat16"))
    return found.dtype, found.reason("trains")
