"""Token weights for pooling, which are low for frequent tokens and punctuation."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file
from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.model_files import DAMAGED, UNUSABLE, weight_files
from sentcompress.models.tensors import module_weights
from sentcompress.models.text_settings import TransformersTokenizer

# Above zero, so that a text of low-weight tokens still has a vector.
LEAST = 0.001
# sentence-transformers' name of the tensor.
TABLE = "emb_layer.weight"


def sif_weights(
    tokenizer: TransformersTokenizer, counts: npt.NDArray[np.int64], smoothing: float, punctuation: float
) -> Tensor:
    """Smooth inverse frequency (SIF) weights: a / (a + p(token)), with p the token's share of all non-special tokens.

    Arora, Liang and Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings", without removing the
    principal component. Special tokens, and tokens that do not occur, have weight 1.

    Args:
        tokenizer: a tokenizer with V tokens.
        counts: [V] occurrences of each token in a corpus.
        smoothing: a; 0 weights only punctuation.
        punctuation: factor on the weight of tokens that consist of punctuation.

    Returns:
        [V] float32, from LEAST to 1.

    Raises:
        ValueError: if all counts are zero.
    """
    special, share, marks = _kinds(tokenizer, counts)
    if not share.sum():
        raise ValueError("no token occurs")
    weights = smoothing / (smoothing + share) if smoothing else np.ones(len(counts))
    weights = np.where(marks, weights * punctuation, weights)
    return torch.from_numpy(np.where(special, 1.0, weights).clip(LEAST, 1.0).astype(np.float32))


def function_tokens(
    tokenizer: TransformersTokenizer, counts: npt.NDArray[np.int64], share: float
) -> tuple[list[int], list[int]]:
    """Frequent tokens and punctuation; the other tokens of a text are its content words.

    Args:
        tokenizer: a tokenizer with V tokens.
        counts: [V] occurrences of each token in a corpus.
        share: a token is frequent if its share of all non-special tokens exceeds this.

    Returns:
        The ids of frequent tokens, most frequent first, and of the other tokens that consist of punctuation, both
        without special tokens.
    """
    special, shares, marks = _kinds(tokenizer, counts)
    frequent = (shares > share) & ~special & ~marks
    found = np.flatnonzero(frequent)
    return found[np.argsort(-shares[found], kind="stable")].tolist(), np.flatnonzero(marks & ~special).tolist()


def _kinds(
    tokenizer: TransformersTokenizer, counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """For each token, [V]: whether it is special, its share of all non-special tokens, whether it is punctuation."""
    special = np.isin(np.arange(len(counts)), tokenizer.all_special_ids)
    others = np.where(special, 0, counts)
    marks = np.array([_is_punctuation(tokenizer, token) for token in range(len(counts))])
    return special, others / max(int(others.sum()), 1), marks


def _is_punctuation(tokenizer: TransformersTokenizer, token: int) -> bool:
    text = tokenizer.convert_tokens_to_string(tokenizer.convert_ids_to_tokens([token]))
    text = text.removeprefix("##").strip()
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def load_token_weights(folder: Path, tokens: int) -> Tensor:
    """The weights [V] of a WordWeights module.

    Args:
        folder: the folder of the module.
        tokens: V, the size of the tokenizer.

    Raises:
        InputError: if there are not V weights, or they cannot be read.
    """
    config = read_json(folder / "config.json")
    if weight_files(folder):
        weights = module_weights(folder).get(TABLE, torch.zeros(0)).flatten()
    else:
        weights = _of_configuration(config)
    if len(weights) != tokens:
        raise InputError(f"{folder} has weights for {len(weights)} tokens, the tokenizer has {tokens}", DAMAGED)
    if not torch.isfinite(weights).all():
        raise InputError(f"{folder} has weights that are NaN or infinite", UNUSABLE)
    return weights


def _of_configuration(config: Any) -> Tensor:
    """The weights from the configuration: older releases of sentence-transformers saved no tensor."""
    try:
        other = float(config["unknown_word_weight"])
        given = {str(word): float(weight) for word, weight in config["word_weights"].items()}
        return torch.tensor([given.get(word, given.get(word.lower(), other)) for word in config["vocab"]])
    except (KeyError, TypeError, ValueError, AttributeError):
        return torch.zeros(0)


def save_token_weights(weights: Tensor, tokenizer: TransformersTokenizer, folder: Path) -> None:
    """Write a WordWeights module of sentence-transformers: a tensor, and a word list for older releases."""
    folder.mkdir(exist_ok=True)
    vocabulary = tokenizer.convert_ids_to_tokens(range(len(weights)))
    table = weights.detach().float().cpu()
    given = {word: round(weight, 6) for word, weight in zip(vocabulary, table.tolist(), strict=True)}
    config = {"vocab": vocabulary, "word_weights": given, "unknown_word_weight": 1.0}
    (folder / "config.json").write_text(json.dumps(config, ensure_ascii=False) + "\n", encoding="utf-8")
    save_file({TABLE: table.unsqueeze(1).contiguous()}, folder / "model.safetensors")
