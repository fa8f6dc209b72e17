"""A static encoder with a tokenizer of whole words, which is no tokenizer of transformers."""

from __future__ import annotations

import torch
from torch import nn

from sentcompress.models.static_encoder import StaticEncoder
from sentcompress.models.text_settings import TextSettings


class WordTokenizer:
    """Words by their places in a list, without special tokens."""

    pad_token_id = 0
    truncation_side = "right"

    def __init__(self, words: list[str]) -> None:
        self._places = {word: place for place, word in enumerate(words, 1)}

    def __len__(self) -> int:
        return len(self._places) + 1

    def num_special_tokens_to_add(self) -> int:
        return 0

    def __call__(self, texts: list[str], *, max_length: int, **_: object) -> dict[str, list[list[int]]]:
        return {"input_ids": [[self._places[word] for word in text.split()][:max_length] for text in texts]}


def make_static_encoder(words: list[str], width: int = 16, seed: int = 0) -> StaticEncoder:
    """Random vectors of `width` dimensions for some words."""
    torch.manual_seed(seed)
    table = nn.Embedding(len(words) + 1, width, padding_idx=0)
    return StaticEncoder(table, WordTokenizer(words), text=TextSettings(max_length=40)).eval()
