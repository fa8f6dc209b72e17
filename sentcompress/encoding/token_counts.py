"""Truncated texts and unknown tokens: how much of the texts a model's tokenizer loses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from sentcompress.models.text_settings import TextSettings, TransformersTokenizer, token_ids

CHUNK = 1000
# Number of texts that are looked at before all are encoded, and how much of each is tokenised.
LOOKED_AT, CHARACTERS_PER_TOKEN = 1000, 40
# Above this share of unknown tokens, texts of different meaning get similar vectors.
MOST_UNKNOWN = 0.1


@dataclass(frozen=True)
class TokenCounts:
    """Token counts of texts before truncation.

    Attributes:
        lengths: [N] tokens of each text, special tokens included.
        limit: the model's maximum length.
        unknown: number of unknown tokens.
        special: special tokens per text.
    """

    lengths: npt.NDArray[np.int64]
    limit: int
    unknown: int
    special: int

    @property
    def truncated_share(self) -> float:
        """The share of texts that are truncated."""
        return float((self.lengths > self.limit).mean()) if len(self.lengths) else 0.0

    @property
    def unknown_share(self) -> float:
        """The share of unknown tokens among all non-special tokens."""
        tokens = int(np.maximum(self.lengths - self.special, 0).sum())
        return self.unknown / tokens if tokens else 0.0

    def told_truncation(self) -> str | None:
        """A warning if some of these texts, the first of many, are longer than the model reads; None if not."""
        longer = int((self.lengths > self.limit).sum())
        if not longer:
            return None
        verb, its = ("is", "its vector ignores") if longer == 1 else ("are", "their vectors ignore")
        return (
            f"{longer:,} of the first {len(self.lengths):,} texts {verb} longer than the {self.limit} tokens that the "
            f"model reads; {its} the rest"
        )

    def told_unknown(self) -> str | None:
        """A warning if more than MOST_UNKNOWN of the tokens are unknown; None if not."""
        if self.unknown_share <= MOST_UNKNOWN:
            return None
        return (
            f"{self.unknown_share:.0%} of the tokens of the first {len(self.lengths):,} texts are unknown to the "
            "model, so it can hardly tell these texts apart; use a model that knows their language"
        )


def count_first(count: Callable[[Sequence[str]], TokenCounts | None], texts: Iterable[str]) -> TokenCounts | None:
    """The counts of the first LOOKED_AT texts; None if there is no tokenizer.

    Args:
        count: counts the tokens of texts; None if there is no tokenizer.
    """
    if (empty := count([""])) is None:
        return None
    return count([text[: CHARACTERS_PER_TOKEN * empty.limit] for text in islice(texts, LOOKED_AT)])


def count_tokens(tokenizer: TransformersTokenizer, settings: TextSettings, texts: Sequence[str]) -> TokenCounts:
    """Count the tokens of each text as prepared for the model, with prompt and lower-casing."""
    lengths: list[int] = []
    unknown = 0
    for start in range(0, len(texts), CHUNK):
        prepared = [settings.prepare(text) for text in texts[start : start + CHUNK]]
        rows = token_ids(tokenizer, prepared)
        lengths += [len(row) for row in rows]
        mark = tokenizer.unk_token_id
        unknown += 0 if mark is None else sum(row.count(mark) for row in rows)
    special = int(tokenizer.num_special_tokens_to_add(pair=False))
    return TokenCounts(np.array(lengths, dtype=np.int64), settings.max_length, unknown, special)
