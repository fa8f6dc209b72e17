"""In which number format an encoder computes while it trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor

from sentcompress.models.dtype_trial import choose_dtype
from sentcompress.models.encoder import Encoder


@contextmanager
def computing_in(dtype: str, device: torch.device, encoder: Encoder) -> Iterator[None]:
    """Forward passes of `encoder` in this block compute in `dtype`, float32 or bfloat16."""
    if dtype == "float32":
        yield
        return
    # On a CPU the backward pass of fused attention takes more time in bfloat16 than all the rest of a step. Written
    # out, attention takes a tenth of that: steps are 1.5 to 2 times as fast, the more so the shorter the sentences.
    attention = encoder.plain_attention() if device.type == "cpu" else nullcontext()
    with attention, torch.autocast(device.type, dtype=torch.bfloat16):
        yield


def training_dtype(
    asked: str, device: torch.device, encoder: Encoder, forward: Callable[[], Tensor]
) -> tuple[str, str]:
    """float32 or bfloat16, and why.

    Args:
        asked: `auto` or the answer itself.
        encoder: what `forward` runs.
        forward: a forward pass over some sentences, for the measurement on a CPU: some machines are faster with
            bfloat16, on others it is many times slower. It runs several times, on one thread.
    """

    def trial(dtype: str) -> Callable[[], object]:
        def step() -> None:
            with computing_in(dtype, device, encoder):
                output = forward()
            output.float().sum().backward()  # type: ignore[no-untyped-call]

        return step

    return choose_dtype(asked, device, trial, "trains")
