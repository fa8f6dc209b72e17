"""The token vectors that a static student starts with, made by its teacher.

Tulkens and van Dongen 2024 (Model2Vec) run each token of a vocabulary through a sentence encoder alone. The vectors can
also be the means of what the teacher makes of each token within sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sentcompress.errors import InputError
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.static_encoder import StaticEncoder
from sentcompress.models.static_folder import plain_tokenizer
from sentcompress.models.token_states import BATCH_TOKENS, measure_token_states
from sentcompress.progress import Reporter


def static_student(teacher: Encoder, sample: Sequence[str], token_dim: int | None, reporter: Reporter) -> StaticEncoder:
    """A static encoder with the teacher's tokens, and vectors of the teacher's width.

    Args:
        teacher: on the device that it is to run on; the student is made on the CPU.
        sample: texts in which the teacher is watched; if there are none, it runs each token alone.
        token_dim: e, the width of the table, if it is narrower: the truncated SVD of the table, and a Dense layer that
            maps the mean to the teacher's width.

    Raises:
        InputError: if the teacher's tokenizer is not a fast one, or `token_dim` is not below its width.
    """
    tokenizer = plain_tokenizer(teacher.tokenizer, lower_case=teacher.text.lower_case)
    if token_dim is not None and token_dim >= teacher.dimension:
        raise InputError(
            f"`token_dim` {token_dim} is not below the {teacher.dimension} dimensions of the teacher's vectors",
            "without `token_dim` the table has their width",
        )
    with (
        reporter.track("sentences of the teacher", total=len(sample)) as sentences,
        reporter.track("tokens of the teacher", total=len(tokenizer), unit="tokens") as tokens,
    ):
        if sample:
            states = measure_token_states(teacher, teacher.depth, sample, sentences, tokens).states
            vectors = _heads(teacher, states.float())
        else:
            vectors = _alone(teacher, len(tokenizer))
            tokens.advance(len(tokenizer))
    table, dense = (vectors, []) if token_dim is None else _factors(vectors, token_dim)
    embedding = nn.Embedding.from_pretrained(table, freeze=False)
    return StaticEncoder(embedding, tokenizer, dense=dense, normalize=True, text=teacher.text).eval()


def _alone(teacher: Encoder, size: int) -> Tensor:
    """The teacher's vector of each token as the only one of a text: [V, D]."""
    *before, after = teacher.tokenize([""])[0]
    ids = torch.tensor([[*before, token, after] for token in range(size)])
    with torch.no_grad():
        parts = [part.to(teacher.device) for part in ids.split(BATCH_TOKENS // ids.shape[1])]
        return torch.cat([teacher(part, torch.ones_like(part)).float().cpu() for part in parts])


def _heads(teacher: Encoder, states: Tensor) -> Tensor:
    """The vectors that mean states of tokens stand for, each as if it were that of a text: [V, H] -> [V, D]."""
    with torch.no_grad():
        alone = states.to(teacher.device).unsqueeze(1)
        return teacher.head(alone, torch.ones(alone.shape[:2], device=alone.device)).cpu()


def _factors(vectors: Tensor, width: int) -> tuple[Tensor, list[Dense]]:
    """The table [V, e] and the Dense layer [e, D] whose product is nearest to the vectors [V, D]."""
    left, values, right = torch.linalg.svd(vectors, full_matrices=False)
    dense = Dense(width, vectors.shape[1], bias=False)
    with torch.no_grad():
        dense.linear.weight.copy_(right[:width].T)
    return left[:, :width] * values[:width], [dense]
