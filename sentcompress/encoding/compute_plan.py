"""Number format and batch size for running a model on a machine, by rule or by measurement."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from sentcompress.encoding.onednn import onednn_is_here, use_onednn
from sentcompress.errors import UsageError
from sentcompress.models.dtype_trial import NO_LAYERS, choose_dtype
from sentcompress.models.encoder import Encoder

# Tokens per batch. On a CPU a batch should fit into the caches (1,024 to 4,096 are equally fast for 384 dimensions,
# 8,192 is 15% slower); a GPU has to be filled.
CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 32_768
# Rows and tokens for the measurement: a few hundredths of a second on a CPU.
TRIAL_SHAPE = (16, 32)


@dataclass(frozen=True)
class ComputePlan:
    """Automatic choices that affect the last digits of vectors. A resumed run keeps its plan.

    Attributes:
        dtype: the format that the encoder's body computes in; pooling, dense layers and normalisation are float32.
        reason: why this dtype was chosen.
        batch_tokens: maximum tokens of a batch.
    """

    dtype: str
    reason: str
    batch_tokens: int

    def to_json(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ComputePlan:
        return cls(**json.loads(text))


def make_plan(
    encoder: Encoder, device: torch.device, dtype: str = "auto", batch_tokens: int | None = None
) -> ComputePlan:
    """Decide how to run `encoder` on `device`.

    Raises:
        UsageError: for an unknown dtype, float16 on a CPU, or a batch without tokens.
    """
    if batch_tokens is not None and batch_tokens < 1:
        raise UsageError(f"`batch_tokens` must be at least 1, not {batch_tokens}")
    tokens = batch_tokens or (CPU_BATCH_TOKENS if device.type == "cpu" else GPU_BATCH_TOKENS)
    if encoder.depth == 0 and dtype == "auto":
        return ComputePlan("float32", NO_LAYERS, tokens)
    with torch.inference_mode():
        chosen, reason = choose_dtype(dtype, device, lambda name: _trial(encoder, device, name), "encodes")
    return ComputePlan(chosen, reason, tokens)


def prepared(encoder: Encoder, device: torch.device, dtype: str) -> Encoder:
    """A copy for inference on `device`; it shares the weights of the original if possible."""
    same = encoder.device == device and dtype == "float32"
    shared = list(encoder.parameters()) + list(encoder.buffers()) if same else []
    memo = {id(item): item for item in (*shared, encoder.tokenizer)}
    with torch.no_grad():
        clone = copy.deepcopy(encoder, memo).eval()
        if not same:
            # The layers after the body are small, so they stay in float32.
            clone.to(device)
            clone.body.to(getattr(torch, dtype))
        if device.type == "cpu" and onednn_is_here():
            use_onednn(clone.body)
    return clone


def _trial(encoder: Encoder, device: torch.device, dtype: str) -> Callable[[], object]:
    """A forward pass in a number format, to be timed."""
    rows, width = TRIAL_SHAPE[0], min(TRIAL_SHAPE[1], encoder.text.max_length)
    ids = torch.arange(rows * width, device=device).view(rows, width) * 7 % encoder.table_size
    ones = torch.ones_like(ids)
    model = prepared(encoder, device, dtype)
    return lambda: model.states(ids, ones)
