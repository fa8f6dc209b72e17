"""How much each token counts in a text's vector: little where it is frequent or a punctuation mark."""

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

from sentcompress.documents import read_json
from sentcompress.errors import InputError
from sentcompress.models.model_files import DAMAGED, weight_files
from sentcompress.models.tensors import module_weights

# No token counts for nothing: a text of such tokens alone would have no vector.
LEAST = 0.001
# As sentence-transformers calls them.
TABLE = "emb_layer.weight"


def sif_weights(tokenizer: Any, counts: npt.NDArray[np.int64], smoothing: float, punctuation: float) -> Tensor:
    """Smooth inverse frequency: a / (a + p(token)), with p its share of all tokens that are not special.

    Arora, Liang and Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings", whose principal component
    is left in. Special tokens count 1, as tokens do that do not occur.

    Args:
        tokenizer: of V tokens.
        counts: [V] occurrences of each token in some corpus.
        smoothing: a; 0 weighs by punctuation alone.
        punctuation: what the weight of a token of punctuation marks alone is multiplied with.

    Returns:
        [V] float32, from LEAST to 1.

    Raises:
        ValueError: if the corpus has no tokens.
    """
    special, share, marks = _kinds(tokenizer, counts)
    if not share.sum():
        raise ValueError("no token occurs")
    weights = smoothing / (smoothing + share) if smoothing else np.ones(len(counts))
    weights = np.where(marks, weights * punctuation, weights)
    return torch.from_numpy(np.where(special, 1.0, weights).clip(LEAST, 1.0).astype(np.float32))


def function_tokens(tokenizer: Any, counts: npt.NDArray[np.int64], share: float) -> tuple[list[int], list[int]]:
    """What is left of a text's tokens are its content words.

    Args:
        tokenizer: of V tokens.
        counts: [V] occurrences of each token in some corpus.
        share: of all tokens that are not special, beyond which a token is a frequent one.

    Returns:
        The frequent tokens, the most frequent first, and the other tokens of punctuation marks alone. No special ones.
    """
    special, shares, marks = _kinds(tokenizer, counts)
    frequent = (shares > share) & ~special & ~marks
    found = np.flatnonzero(frequent)
    return found[np.argsort(-shares[found], kind="stable")].tolist(), np.flatnonzero(marks & ~special).tolist()


def _kinds(
    tokenizer: Any, counts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """[V] each: whether a token is special, its share of all that are not, and whether it is punctuation."""
    special = np.isin(np.arange(len(counts)), tokenizer.all_special_ids)
    others = np.where(special, 0, counts)
    marks = np.array([_is_punctuation(tokenizer, token) for token in range(len(counts))])
    return special, others / max(int(others.sum()), 1), marks


def _is_punctuation(tokenizer: Any, token: int) -> bool:
    text = tokenizer.convert_tokens_to_string(tokenizer.convert_ids_to_tokens([token]))
    text = text.removeprefix("##").strip()
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)


def load_token_weights(folder: Path, tokens: int) -> Tensor:
    """The weights [V] of a WordWeights module.

    Args:
        folder: of that module.
        tokens: V, of the tokenizer.

    Raises:
        InputError: if there are not so many, or they cannot be read.
    """
    config = read_json(folder / "config.json")
    if weight_files(folder):
        weights = module_weights(folder).get(TABLE, torch.zeros(0)).flatten()
    else:
        weights = _of_configuration(config)
    if len(weights) != tokens:
        raise InputError(f"{folder} has weights of {len(weights)} tokens, the tokenizer has {tokens}", DAMAGED)
    if not torch.isfinite(weights).all():
        raise InputError(f"{folder} has weights that are not numbers", "is the model damaged?")
    return weights


def _of_configuration(config: Any) -> Tensor:
    """Older releases of sentence-transformers saved no tensor, but the words and their weights alone."""
    try:
        other = float(config["unknown_word_weight"])
        given = {str(word): float(weight) for word, weight in config["word_weights"].items()}
        return torch.tensor([given.get(word, given.get(word.lower(), other)) for word in config["vocab"]])
    except (KeyError, TypeError, ValueError, AttributeError):
        return torch.zeros(0)


def save_token_weights(weights: Tensor, tokenizer: Any, folder: Path) -> None:
    """Write a WordWeights module of sentence-transformers: the tensor, and words for releases that read no tensor."""
    folder.mkdir(exist_ok=True)
    vocabulary = tokenizer.convert_ids_to_tokens(range(len(weights)))
    table = weights.detach().float().cpu()
    given = {word: round(weight, 6) for word, weight in zip(vocabulary, table.tolist(), strict=True)}
    config = {"vocab": vocabulary, "word_weights": given, "unknown_word_weight": 1.0}
    (folder / "config.json").write_text(json.dumps(config, ensure_ascii=False) + "\n", encoding="utf-8")
    save_file({TABLE: table.unsqueeze(1).contiguous()}, folder / "model.safetensors")
