"""Saves the trained student as a model folder, reads it back and scores it again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from sentcompress.errors import TrainingError
from sentcompress.methods.base import Method
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import read_back, save_encoder
from sentcompress.numeric import at_most
from sentcompress.training.dev import Dev, score_of
from sentcompress.training.health import Health, Watch

# Tolerance between two dev scores in one process: equal on a CPU; on a GPU the order of a sum may differ.
TOLERANCE = 1e-5
# Tolerance between two dev scores of the same weights, possibly on two machines if the run was resumed.
ELSEWHERE = 0.05


@dataclass(frozen=True)
class Deployed:
    """The saved model as read back; `health` is None if there are too few vectors."""

    score: float
    health: Health | None
    dimension: int
    parameters: int


def deploy(
    encoder: Encoder,
    method: Method,
    folder: Path,
    dev: Dev,
    device: torch.device,
    *,
    chosen_by: float | None,
    trust_remote_code: bool,
) -> Deployed:
    """Write the student with the method's deployed head, read it back, and compute its dev score.

    Args:
        chosen_by: the dev score by which these weights were selected.
        trust_remote_code: whether the user allows the model to run its own code.

    Raises:
        TrainingError: if the saved model does not reproduce the trained vectors, the weights no longer have the dev
            score by which they were selected, or the vectors contain NaN or infinity.
        SentcompressError: if a weight is NaN or infinite; nothing is written in that case.
    """
    whole = encoder.with_dense([*encoder.dense_layers, *_head(method)], normalize=encoder.normalize)
    expected = score_of(dev, lambda ids, mask: method.deploy(encoder.embed(ids, mask)), device)
    # A score of ranks jumps where a number only rounds differently.
    slack = float(getattr(dev, "slack", 0.0))
    if chosen_by is not None and not at_most(abs(expected - chosen_by), max(ELSEWHERE, slack)):
        raise TrainingError(
            f"the weights selected with a dev score of {chosen_by:.6f} now score {expected:.6f}",
            "train again with `force`, on one kind of machine and with the same libraries throughout",
        )
    whole.text = whole.text.trained()
    save_encoder(whole, folder)
    saved = read_back(folder, trust_remote_code=trust_remote_code).to(device)
    watch = Watch(saved.embed)
    score = score_of(dev, watch, device)
    if not watch.finite:
        raise TrainingError(
            "the saved student returns vectors with NaN or infinity", "try a lower `lr` or another starting model"
        )
    if not at_most(abs(score - expected), max(TOLERANCE, slack)):
        raise TrainingError(
            f"the saved student scores {score:.6f}, but the trained one scored {expected:.6f}",
            "choose another student: this one cannot be saved exactly",
        )
    return Deployed(score, watch.health(), saved.dimension, saved.count_parameters())


def _head(method: Method) -> list[Dense]:
    head = method.deployed_head()
    if head is None:
        return []
    dense = Dense(head.weight.shape[1], head.weight.shape[0], bias=head.bias is not None, activation=head.activation)
    with torch.no_grad():
        dense.linear.weight.copy_(head.weight)
        if head.bias is not None:
            dense.linear.bias.copy_(head.bias)
    return [dense]
