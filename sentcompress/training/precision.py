"""The number format that an encoder computes in during training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor

from sentcompress.models.dtype_trial import NO_LAYERS, choose_dtype
from sentcompress.models.encoder import Encoder


@contextmanager
def computing_in(dtype: str, device: torch.device, encoder: Encoder) -> Iterator[None]:
    """Make forward passes of `encoder` inside the block compute in `dtype`, float32 or bfloat16."""
    if dtype == "float32":
        yield
        return
    # On a CPU, the backward pass of fused attention in bfloat16 takes longer than the rest of a step; unfused attention
    # takes a tenth of that, and steps are 1.5 to 2 times as fast, most of all for short sentences.
    attention = encoder.plain_attention() if device.type == "cpu" else nullcontext()
    with attention, torch.autocast(device.type, dtype=torch.bfloat16):
        yield


def training_dtype(
    asked: str, device: torch.device, encoder: Encoder, forward: Callable[[], Tensor]
) -> tuple[str, str]:
    """float32 or bfloat16, and the reason.

    Args:
        asked: `auto`, float32 or bfloat16.
        encoder: the encoder that `forward` runs.
        forward: a forward pass over some sentences, for the measurement on a CPU: some machines are faster with
            bfloat16, others many times slower. It runs several times, on one thread.
    """

    if encoder.depth == 0 and asked == "auto":
        return "float32", NO_LAYERS

    def trial(dtype: str) -> Callable[[], object]:
        def step() -> None:
            with computing_in(dtype, device, encoder):
                output = forward()
            output.float().sum().backward()  # type: ignore[no-untyped-call]

        return step

    return choose_dtype(asked, device, trial, "trains")
