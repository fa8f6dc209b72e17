"""An encoder that is no transformer: a vector for each token, and their mean."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sentcompress.models.encoder import Encoder, TextSettings


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


class StaticEncoder(Encoder):
    """Token vectors of a table are all its states: it has no layers, no positions and no attention."""

    def __init__(self, table: nn.Embedding, tokenizer: object, **parts: object) -> None:
        super().__init__(tokenizer, **parts)  # type: ignore[arg-type]
        self.table = table

    def parts(self) -> dict[str, object]:
        return {"table": self.table, **super().parts()}

    @property
    def body(self) -> nn.Module:
        return self.table

    @property
    def architecture(self) -> str:
        return "static"

    @property
    def hidden_size(self) -> int:
        return self.table.embedding_dim

    @property
    def table_size(self) -> int:
        return self.table.num_embeddings

    def hidden_states(
        self, input_ids: Tensor, attention_mask: Tensor | None, *, every_layer: bool
    ) -> tuple[Tensor, ...]:
        return (self.table(input_ids),)


def make_static_encoder(words: list[str], width: int = 16, seed: int = 0) -> StaticEncoder:
    """Random vectors of `width` dimensions for some words."""
    torch.manual_seed(seed)
    table = nn.Embedding(len(words) + 1, width, padding_idx=0)
    return StaticEncoder(table, WordTokenizer(words), text=TextSettings(max_length=40)).eval()
