"""Saves the trained student as a model folder, reads it back and compares its vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from sentcompress.errors import TrainingError
from sentcompress.methods.base import Method
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import read_back, save_encoder
from sentcompress.numeric import at_most
from sentcompress.training.batches import Batch
from sentcompress.training.health import Health, Watch

# Rows whose vectors are compared.
CHECKED = 8
# Largest relative difference of two vectors. The same weights give the same ones, or differ by the rounding of float32
# (1e-6) where a kernel sums in another order; a wrong head or pooling or a missing weight changes them by a tenth.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Deployed:
    """The saved model as read back; `health` is None if there are too few vectors."""

    health: Health | None
    dimension: int
    parameters: int


def deploy(
    encoder: Encoder,
    method: Method,
    folder: Path,
    batch: Batch,
    scored: Watch,
    *,
    trust_remote_code: bool,
) -> Deployed:
    """Write the student with the method's deployed head, read it back, and compare the vectors of some texts.

    Args:
        batch: texts from short to long, so that padding is compared, too.
        scored: what the dev score of these weights has seen.
        trust_remote_code: whether the user allows the model to run its own code.

    Raises:
        TrainingError: if the saved model does not reproduce the trained vectors, or vectors contain NaN or infinity.
        SentcompressError: if a weight is NaN or infinite; nothing is written in that case.
    """
    whole = encoder.with_dense([*encoder.dense_layers, *_head(method)], normalize=encoder.normalize)
    whole.text = whole.text.trained()
    save_encoder(whole, folder)
    saved = read_back(folder, trust_remote_code=trust_remote_code).to(batch.input_ids.device)
    with torch.inference_mode():
        trained = method.deploy(encoder.embed(batch.input_ids, batch.attention_mask))
        found = saved.embed(batch.input_ids, batch.attention_mask)
    if not (scored.finite and found.isfinite().all()):
        raise TrainingError(
            "the saved student returns vectors with NaN or infinity", "try a lower `lr` or another starting model"
        )
    difference = _difference(found, trained)
    if not at_most(difference, TOLERANCE):
        raise TrainingError(
            f"the vectors of the saved student differ from those of the trained one (relative difference "
            f"{difference:.2g}; float32 must stay below {TOLERANCE:g})",
            "choose another student: this one cannot be saved exactly",
        )
    return Deployed(scored.health(), saved.dimension, saved.count_parameters())


def _difference(found: Tensor, trained: Tensor) -> float:
    """The largest distance of two vectors as a share of the longest one; infinity if their widths differ."""
    if found.shape != trained.shape:
        return math.inf
    # Of the longest, since a vector may be zero.
    longest = float(trained.norm(dim=1).max())
    distance = float((found - trained).norm(dim=1).max())
    return distance / longest if longest else distance


def _head(method: Method) -> list[Dense]:
    head = method.deployed_head()
    if head is None:
        return []
    linear = head.linear
    dense = Dense(linear.in_features, linear.out_features, bias=linear.bias is not None, activation=head.activation)
    dense.linear.load_state_dict(linear.state_dict())
    return [dense]
