"""Short texts made from the long ones of a sentence table, as an augmentation: queries, and single sentences."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentcompress.corpora.sentence_table import MADE_QUERY
from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.queries import SHORT_TEXTS, make_queries
from sentcompress.passages.words import mark, words_of

# A shorter text is about as long as a query itself.
LEAST_WORDS = 20


@dataclass(frozen=True)
class QueryCopies:
    """Makes queries from texts of LEAST_WORDS words or more.

    Attributes:
        per_text: how many on average; 0.5 makes one from every second text, chosen by a hash.
        frequencies: file with the document frequencies of `documents` texts.
    """

    per_text: float
    seed: int
    frequencies: Path | None = None
    documents: int = 0

    source = MADE_QUERY
    in_workers = True

    @property
    def copies(self) -> int:
        return math.ceil(self.per_text)

    @property
    def summary(self) -> str:
        return f"{self.per_text:g} from each text of {LEAST_WORDS} words or more: {', '.join(SHORT_TEXTS)}"

    def describe(self) -> dict[str, Any]:
        return {"per_text": self.per_text, "seed": self.seed, "least_words": LEAST_WORDS, "kinds": [*SHORT_TEXTS]}

    def load(self) -> QueryMaker:
        assert self.frequencies is not None
        return QueryMaker(self, DocumentFrequencies.load(self.frequencies, self.documents))


@dataclass(frozen=True)
class QueryMaker:
    """The augmenter of QueryCopies."""

    spec: QueryCopies
    frequencies: DocumentFrequencies
    note = ""

    def augment(self, texts: Sequence[str], first_row: int, copy: int) -> list[str]:
        """A query from each text; empty for texts that are short, or not chosen for this copy."""
        return [self._query(text, copy) for text in texts]

    def _query(self, text: str, copy: int) -> str:
        if len(text.split()) < LEAST_WORDS:
            return ""
        seed = mark(text, self.spec.seed) + copy
        if random.Random(f"chosen {seed}").random() >= self.spec.per_text - (copy - 1):
            return ""
        made = make_queries(text, 1, self.frequencies, seed, tuple(SHORT_TEXTS))
        return made[0][1] if made else ""


def count_frequencies(texts: Iterable[str], path: Path) -> None:
    """Count in how many texts each word occurs, and write it to `path`."""
    frequencies = DocumentFrequencies()
    for text in texts:
        frequencies.add(words_of(text))
    frequencies.save(path)
