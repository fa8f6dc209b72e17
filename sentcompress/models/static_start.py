"""The token vectors that a static student starts with, made by its teacher.

Tulkens and van Dongen 2024 (Model2Vec) run each token of a vocabulary through a sentence encoder, and weigh the vectors
by the tokens' frequency. They can also be the means of the states that the teacher gives each token in sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.static_encoder import StaticEncoder, token_vectors
from sentcompress.models.static_folder import plain_tokenizer
from sentcompress.models.text_settings import TextSettings
from sentcompress.models.token_states import BATCH_TOKENS, measure_token_states
from sentcompress.models.token_weights import sif_weights
from sentcompress.progress import Reporter

# a of the SIF weights, the value of Arora et al. 2017.
SMOOTHING = 1e-3


def static_student(
    teacher: Encoder,
    counts: npt.NDArray[np.int64],
    sample: Sequence[str],
    token_dim: int | None,
    reporter: Reporter,
) -> StaticEncoder:
    """A static encoder with the teacher's tokens, and vectors of the teacher's width.

    The table is centred, so that what all texts share cancels out, and its rows are scaled by SIF weights.

    Args:
        teacher: on the device that it is to run on; the student is made on the CPU.
        counts: [V] occurrences of each token in the training text.
        sample: texts in which the teacher's token states are measured; if there are none, it encodes each token alone.
        token_dim: e, the width of the table, if it is narrower: the truncated SVD of the table, and a Dense layer that
            maps the mean to the teacher's width.

    Raises:
        ValueError: if all counts are zero.
        InputError: if the teacher's tokenizer is not a fast one, or `token_dim` is not below its width.
    """
    tokenizer = plain_tokenizer(teacher.tokenizer, lower_case=teacher.text.lower_case)
    if token_dim is not None and token_dim >= teacher.dimension:
        raise InputError(
            f"`token_dim` {token_dim} is not below the {teacher.dimension} dimensions of the teacher's vectors",
            "without `token_dim` the table has their width",
        )
    weights = sif_weights(teacher.tokenizer, counts, SMOOTHING, punctuation=1.0)
    vectors = _in_sentences(teacher, sample, reporter) if sample else _alone(teacher, reporter)
    counts = counts.copy()
    counts[teacher.tokenizer.all_special_ids] = 0
    shares = torch.from_numpy(counts / counts.sum()).float()
    vectors = (vectors - shares @ vectors) * weights.unsqueeze(1)
    # An empty text is this token.
    vectors[teacher.padding] = 0.0
    table, dense = (vectors, []) if token_dim is None else _factors(vectors, token_dim)
    return StaticEncoder(token_vectors(table), tokenizer, dense=dense, normalize=True, text=_text(teacher)).eval()


def _text(teacher: Encoder) -> TextSettings:
    """The teacher's, without lower-casing, which is the tokenizer's task here: no setting of the folder tells it."""
    return replace(teacher.text, lower_case=False)


@torch.no_grad()
def _alone(teacher: Encoder, reporter: Reporter) -> Tensor:
    """The teacher's vector of each token as the only one of a text: [V, D]."""
    size = len(teacher.tokenizer)
    *before, after = teacher.tokenize([""])[0]
    ids = torch.tensor([[*before, token, after] for token in range(size)])
    found = []
    with reporter.track("encoding the vocabulary", total=size, unit="tokens") as told:
        for part in torch.split(ids, BATCH_TOKENS // ids.shape[1]):
            found.append(teacher(part.to(teacher.device), torch.ones_like(part, device=teacher.device)).cpu())
            told.advance(len(part))
    return torch.cat(found)


@torch.no_grad()
def _in_sentences(teacher: Encoder, sample: Sequence[str], reporter: Reporter) -> Tensor:
    """The vector of each token's mean last state in the sample, as if it were the only one of a text: [V, D]."""
    means = measure_token_states(teacher, teacher.depth, sample, reporter).states
    states = means.float().to(teacher.device).unsqueeze(1)
    return teacher.head(states, torch.ones(states.shape[:2], device=states.device)).cpu()


def _factors(vectors: Tensor, width: int) -> tuple[Tensor, list[Dense]]:
    """The table [V, e] and the Dense layer from e to D whose product is nearest to the vectors [V, D]."""
    left, values, right = torch.linalg.svd(vectors, full_matrices=False)
    dense = Dense(width, vectors.shape[1], bias=False)
    with torch.no_grad():
        dense.linear.weight.copy_(right[:width].T)
    return left[:, :width] * values[:width], [dense]
