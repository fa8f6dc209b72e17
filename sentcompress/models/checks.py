"""Checks of a loaded model: finite weights, matching widths and vocabulary, a finite vector for a short text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.errors import InputError, SentcompressError
from sentcompress.models.encoder import Encoder
from sentcompress.models.library_errors import reading

Tensors = Mapping[str, Tensor] | Mapping[str, npt.NDArray[np.floating]]
# The text that a loaded model is tested with.
TRIAL = "a word"
DAMAGED = "copy or download the model again, or train it again with a lower learning rate"
# The hints if the model cannot compute a vector: many need more than the tokens of a text, such as LayoutLMv2 and CLIP.
NO_STATES = (
    "choose a model that computes token states (last_hidden_state) from nothing but token ids and their mask",
    "if it is one, copy or download it again",
)


def unsound(tensors: Tensors) -> str | None:
    """The first tensor with NaN or infinity, as `name (3 of 100 values)`; None if all values are finite."""
    for name, tensor in tensors.items():
        values = torch.as_tensor(tensor)
        # If the sum is finite, all values are; this takes a third of the time. The sum itself can also overflow.
        if values.sum().isfinite():
            continue
        bad = int(values.numel() - values.isfinite().sum())
        if bad:
            return f"{name} ({bad:,} of {values.numel():,} values)"
    return None


def require_sound(tensors: Tensors, what: str, hint: str) -> None:
    """Raise SentcompressError, naming the tensor, if a tensor of `what` has NaN or infinity."""
    if found := unsound(tensors):
        raise SentcompressError(f"{what} has NaN or infinity in the tensor {found}", hint)


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
    with reading(f"{label} cannot be used", NO_STATES), torch.inference_mode():
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
                "copy or download the model again, with all modules of the same model",
            )
        width, before = layer.linear.out_features, "another one"


def _check_tokens(encoder: Encoder, label: str) -> None:
    rows, vocabulary = encoder.table_size, encoder.tokenizer.get_vocab()
    numbers = [*vocabulary.values(), encoder.padding, *encoder.tokenize([TRIAL])[0]]
    if not 0 <= min(numbers) <= max(numbers) < rows:
        raise InputError(
            f"the tokenizer of {label} has the token id {max(numbers)}, but the model has only {rows} embeddings",
            "copy or download the model again, with the tokenizer that belongs to its weights",
        )
