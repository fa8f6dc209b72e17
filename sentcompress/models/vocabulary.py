"""Vocabulary trimming: keep the special tokens, single characters and most frequent word pieces of a corpus."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.encoder import Encoder
from sentcompress.models.text_settings import TransformersTokenizer
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.progress import Task
from sentcompress.published import FOLDER

CONTINUED = "##"
# Tokens that occur less often in the corpus are replaced by frequent tokens of English, those of this student.
FREQUENT = 3
OF_ENGLISH = "general-2m"


def token_occurrences(
    encoder: Encoder, texts: Iterable[Sequence[str]], task: Task | None = None
) -> npt.NDArray[np.int64]:
    """Occurrences of each token id, [V], including the model's own prompt; `task` counts texts."""
    counts = np.zeros(len(encoder.tokenizer), np.int64)
    for part in texts:
        for ids in encoder.tokenize(part):
            np.add.at(counts, ids, 1)
        if task:
            task.advance(len(part))
    return counts


def is_word_piece(tokenizer: TransformersTokenizer) -> bool:
    """Whether this is a fast WordPiece tokenizer, the only kind whose vocabulary can be trimmed."""
    if not tokenizer.is_fast:
        return False
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    return bool(backend["model"].get("type") == "WordPiece")


def trim_vocabulary(
    encoder: TransformerEncoder, size: int, counts: npt.NDArray[np.int64], label: str, character_count: int = 0
) -> list[int]:
    """Keep `size` tokens in an encoder's tokenizer and table, in place; words are then split into more pieces.

    The special tokens and pieces of one character are kept, then the most frequent pieces; ties keep the order of the
    old vocabulary. In a vocabulary such as that of bert-base-uncased, frequent tokens of English come before those that
    the corpus has only once or twice: search fidelity on held-out documents is higher by 0.1 to 1.5 points
    (docs/decisions/0010-log.md). If all pieces of one character are kept, no known word becomes unknown. If
    characters that are rare in the corpus are dropped, words with them become unknown; BERT's vocabulary has some 1,700
    pieces of such characters, from many scripts.

    Args:
        counts: [V] occurrences of each token, from `token_occurrences`.
        label: the model's name, for errors.
        character_count: keep the pieces of characters that occur at least this often, alone or inside a word; those of
            ASCII characters are always kept.

    Returns:
        The old ids of the tokens that are kept, in the order of the new ones.

    Raises:
        InputError: if the tokenizer is not WordPiece, or there are more than `size` tokens that must be kept.
    """
    if not is_word_piece(encoder.tokenizer):
        raise InputError(
            f"the vocabulary of {label} cannot be trimmed: it is not a WordPiece vocabulary", "omit `vocabulary`"
        )
    backend = json.loads(encoder.tokenizer.backend_tokenizer.to_str())
    old: dict[str, int] = backend["model"]["vocab"]
    special = {entry["content"] for entry in backend["added_tokens"]}
    single = {token: token.removeprefix(CONTINUED) for token in old}
    single = {token: character for token, character in single.items() if len(character) == 1}
    occurrences = Counter[str]()
    for token, character in single.items():
        occurrences[character] += int(counts[old[token]])
    single = {
        token: character
        for token, character in single.items()
        if character.isascii() or occurrences[character] >= character_count
    }
    needed = [token for token in old if token in special or token in single]
    if not len(needed) <= size <= len(old):
        raise InputError(
            f"`vocabulary` {size}: {label} has {len(old)} tokens; {len(needed)} special tokens and characters must be "
            "kept",
            f"choose {len(needed)} to {len(old)}",
        )
    english = _english_tokens()
    english = english if english <= old.keys() else frozenset()

    def rank(token: str) -> tuple[int, bool, int]:
        count = int(counts[old[token]])
        return (-count if count >= FREQUENT else 0, token not in english, -count)

    others = set(old).difference(needed)
    rest = sorted((token for token in old if token in others), key=rank)
    chosen = {*needed, *rest[: size - len(needed)]}
    kept = [token for token in sorted(old, key=old.__getitem__) if token in chosen]
    encoder.tokenizer = _tokenizer_of(encoder.tokenizer, backend, {token: place for place, token in enumerate(kept)})
    rows = [old[token] for token in kept]
    _cut_table(encoder, rows)
    return rows


@cache
def _english_tokens() -> frozenset[str]:
    backend = read_json(FOLDER / OF_ENGLISH / "tokenizer.json")
    return frozenset(backend["model"]["vocab"])


def _tokenizer_of(
    tokenizer: TransformersTokenizer, backend: dict[str, Any], vocabulary: dict[str, int]
) -> TransformersTokenizer:
    """The same tokenizer with another vocabulary; updates the ids of special tokens wherever they occur."""
    from tokenizers import Tokenizer

    backend["model"]["vocab"] = vocabulary
    for entry in backend["added_tokens"]:
        entry["id"] = vocabulary[entry["content"]]
    processor = backend.get("post_processor") or {}
    for name, entry in (processor.get("special_tokens") or {}).items():
        entry["ids"] = [vocabulary[token] for token in entry.get("tokens", [name])]
    for side in ("sep", "cls"):
        if side in processor:
            processor[side][1] = vocabulary[processor[side][0]]
    if backend.get("padding"):
        backend["padding"]["pad_id"] = vocabulary[backend["padding"]["pad_token"]]
    settings = {
        name: getattr(tokenizer, name)
        for name in ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "model_max_length")
    }
    lower = {"do_lower_case": tokenizer.do_lower_case} if hasattr(tokenizer, "do_lower_case") else {}
    kind: Any = type(tokenizer)
    made: TransformersTokenizer = kind(tokenizer_object=Tokenizer.from_str(json.dumps(backend)), **settings, **lower)
    return made


def _cut_table(encoder: TransformerEncoder, rows: Sequence[int]) -> None:
    transformer: Any = encoder.transformer
    table = transformer.get_input_embeddings()
    pad = encoder.tokenizer.pad_token_id
    smaller = nn.Embedding(len(rows), table.weight.shape[1], padding_idx=pad)
    with torch.no_grad():
        smaller.weight.copy_(table.weight[torch.tensor(rows)])
    if encoder.token_weights is not None:
        encoder.token_weights = nn.Parameter(encoder.token_weights[torch.tensor(rows)], requires_grad=False)
    transformer.set_input_embeddings(smaller)
    transformer.config.vocab_size = len(rows)
    transformer.config.pad_token_id = pad
