"""Checks of a loaded model: finite weights, matching widths and vocabulary, and the vector of a short text."""

from __future__ import annotations

import torch

from sentcompress.errors import InputError
from sentcompress.models.encoder import Encoder
from sentcompress.models.finite_tensors import unsound
from sentcompress.models.library_errors import reading

# The text that a model is tried with.
TRIAL = "a word"
DAMAGED = "is the model damaged, or was its training unstable?"


def check_sound(encoder: Encoder, label: str) -> None:
    """Refuse a model that cannot compute finite vectors.

    Args:
        encoder: on the CPU, in eval mode.
        label: the name to show.

    Raises:
        InputError: if a weight is NaN or infinite, parts do not fit together, tokens are missing from the embedding
            table, or a short text does not get a finite vector.
    """
    _check_numbers(encoder, label)
    with reading(f"{label} cannot be used"), torch.inference_mode():
        _check_widths(encoder, label)
        _check_tokens(encoder, label)
        ids = torch.tensor(encoder.tokenize([TRIAL]))
        vector = encoder(ids, torch.ones_like(ids))
    if vector.shape != (1, encoder.dimension):
        raise InputError(f"{label} returns the shape {tuple(vector.shape)}, not one vector per text", DAMAGED)
    if not torch.isfinite(vector).all():
        raise InputError(f"{label} returns a vector with NaN or infinite values", DAMAGED)


def _check_numbers(encoder: Encoder, label: str) -> None:
    if found := unsound({**dict(encoder.named_parameters()), **dict(encoder.named_buffers())}):
        raise InputError(f"the weights of {label} have NaN or infinite values: {found}", DAMAGED)


def _check_widths(encoder: Encoder, label: str) -> None:
    width, before = encoder.pooled_dimension, "its pooling"
    for layer in encoder.dense_layers:
        if layer.linear.in_features != width:
            raise InputError(
                f"{label} has a Dense layer for {layer.linear.in_features} dimensions after {before}, which gives "
                f"{width}",
                "do its modules belong to the same model?",
            )
        width, before = layer.linear.out_features, "another one"


def _check_tokens(encoder: Encoder, label: str) -> None:
    rows, vocabulary = encoder.table_size, encoder.tokenizer.get_vocab()
    numbers = [*vocabulary.values(), encoder.padding, *encoder.tokenize([TRIAL])[0]]
    if not 0 <= min(numbers) <= max(numbers) < rows:
        raise InputError(
            f"the tokenizer of {label} has the token id {max(numbers)}, but the model has only {rows} embeddings",
            "do the tokenizer and the weights belong to the same model?",
        )
