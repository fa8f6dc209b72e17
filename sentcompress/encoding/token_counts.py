"""How much of the texts a model's tokenizer loses: what it cuts off, and what it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.models.text import TextSettings, token_ids

CHUNK = 1000


@dataclass(frozen=True)
class TokenCounts:
    """Tokens of some texts before anything is cut off.

    Attributes:
        lengths: [N] tokens of each text, special ones included.
        limit: the most that the model reads.
        unknown: tokens that stand for a piece of text that the vocabulary lacks.
        special: special tokens of a text.
    """

    lengths: npt.NDArray[np.int64]
    limit: int
    unknown: int
    special: int

    @property
    def truncated_share(self) -> float:
        """The share of texts of which the model does not read the end."""
        return float((self.lengths > self.limit).mean()) if len(self.lengths) else 0.0

    @property
    def unknown_share(self) -> float:
        """The share of unknown tokens among all that are not special."""
        tokens = int(np.maximum(self.lengths - self.special, 0).sum())
        return self.unknown / tokens if tokens else 0.0


def count_tokens(tokenizer: Any, settings: TextSettings, texts: Sequence[str]) -> TokenCounts:
    """Count the tokens of each text as the model would get them, prompt and lower case included."""
    lengths: list[int] = []
    unknown = 0
    for start in range(0, len(texts), CHUNK):
        prepared = [settings.prepare(text) for text in texts[start : start + CHUNK]]
        # verbose=False: a text beyond the limit is what is looked for here, not a mistake to warn of.
        rows = token_ids(tokenizer, prepared, truncation=False, verbose=False)
        lengths += [len(row) for row in rows]
        mark = tokenizer.unk_token_id
        unknown += 0 if mark is None else sum(row.count(mark) for row in rows)
    special = int(tokenizer.num_special_tokens_to_add(pair=False))
    return TokenCounts(np.array(lengths, dtype=np.int64), settings.max_length, unknown, special)
