"""How a model is run on a machine: number format and batch size, by rule where one holds, else by measurement."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import torch

from sentcompress.encoding.linear import onednn_is_here, use_onednn
from sentcompress.errors import UsageError
from sentcompress.models.dtype_trial import choose_dtype
from sentcompress.models.encoder import Encoder

# Tokens of one batch. On a CPU, what its caches hold (1,024 to 4,096 measure alike for 384 dimensions; 8,192 is 15%
# slower); a GPU has to be filled.
CPU_BATCH_TOKENS = 2048
GPU_BATCH_TOKENS = 32_768
# The measurement: sentences of the usual length, as many as take a CPU a few hundredths of a second.
TRIAL_SHAPE = (16, 32)


@dataclass(frozen=True)
class ComputePlan:
    """What changes the last digits of vectors without being asked for. A resumed run keeps the plan it began with.

    Attributes:
        dtype: what the encoder's body computes in; pooling, dense layers and normalisation are always float32.
        reason: why that dtype.
        batch_tokens: the largest number of tokens in a batch.
    """

    dtype: str
    reason: str
    batch_tokens: int

    def to_json(self) -> str:
        return json.dumps({"plan": asdict(self)}) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ComputePlan:
        return cls(**json.loads(text)["plan"])


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
    with torch.inference_mode():
        chosen, reason = choose_dtype(dtype, device, lambda name: _trial(encoder, device, name), "encodes")
    return ComputePlan(chosen, reason, tokens)


def prepared(encoder: Encoder, device: torch.device, dtype: str) -> Encoder:
    """A copy for inference on `device`; the original is not touched, and shares its weights where it can."""
    same = encoder.device == device and dtype == "float32"
    shared = list(encoder.parameters()) + list(encoder.buffers()) if same else []
    memo = {id(item): item for item in (*shared, encoder.tokenizer)}
    with torch.no_grad():
        clone = copy.deepcopy(encoder, memo).eval()
        if not same:
            # The layers after the body are small, and in float32 they round nothing away.
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
