"""How much there is to embed, and how long a text takes; `workload` measures both."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sentcompress.commands.shared import DEV_PASSAGES
from sentcompress.corpora.search_texts import DEV_WORDS

# How long a student takes to encode, as a share of the teacher's time, where its shape is not known; and, besides the
# share of multiplications, what takes as long for both.
STUDENT_COST, SAME_FOR_ALL = 0.5, 0.1


@dataclass(frozen=True)
class EmbeddingLoad:
    """The amount of text to encode, and the teacher's speed.

    Attributes:
        texts: passages, titles and queries to train on.
        words, tokens: of all of them.
        tokens_per_second: of the teacher, as it embeds for training.
        exact_tokens_per_second: of the teacher in float32, as it is measured.
        searched: passages of the held-out collection.
        spent: seconds that reading and measuring took.
        passage_tokens: of a passage, on average; None: as of any other text.
        student_cost: how long a student takes to encode, as a share of the teacher's time.
        held_out: passages of the held-out documents; None: unknown, perhaps as many as are searched.
    """

    texts: int
    words: int
    tokens: int
    tokens_per_second: float
    exact_tokens_per_second: float
    searched: int
    spent: float = 0.0
    passage_tokens: float | None = None
    student_cost: float = STUDENT_COST
    held_out: float | None = None

    @property
    def seconds(self) -> float:
        """The seconds to encode all texts."""
        return self.tokens / self.tokens_per_second

    def with_more(self, share: float) -> EmbeddingLoad:
        """The load with other texts added, so that these are the given share of all words."""
        texts, words, tokens = (round(count / (1 - share)) for count in (self.texts, self.words, self.tokens))
        return replace(self, texts=texts, words=words, tokens=tokens)

    @property
    def exact_seconds_per_text(self) -> float:
        """The seconds to encode a text in float32."""
        return self.tokens / self.texts / self.exact_tokens_per_second

    @property
    def exact_seconds_per_passage(self) -> float:
        """The time to encode a passage in float32; passages are longer than titles and queries."""
        return self._passage_tokens / self.exact_tokens_per_second

    @property
    def dev_passages(self) -> float:
        """The number of passages that a checkpoint is scored on, where there is time."""
        return min(self.searched, DEV_PASSAGES, DEV_WORDS / (self._passage_tokens * self.words / self.tokens))

    @property
    def _passage_tokens(self) -> float:
        return self.tokens / self.texts if self.passage_tokens is None else self.passage_tokens
