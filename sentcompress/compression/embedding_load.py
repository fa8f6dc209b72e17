"""The amount of text to encode, and the teacher's speed; `workload` measures both."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sentcompress.commands.shared import DEV_PASSAGES
from sentcompress.corpora.search_texts import DEV_WORDS

# A student's encoding time as a share of the teacher's, if its shape is unknown; and the part of the encoding time that
# does not depend on the number of multiplications.
STUDENT_COST, SAME_FOR_ALL = 0.5, 0.1


@dataclass(frozen=True)
class EmbeddingLoad:
    """The amount of text to encode, and the teacher's speed.

    Attributes:
        texts: number of texts to train on: passages, titles and queries.
        words, tokens: number of words and tokens in these texts.
        tokens_per_second: speed of the teacher in the number format that it uses for training data.
        exact_tokens_per_second: speed of the teacher in float32, which is used for measurements.
        searched: number of passages in the held-out collection.
        spent: seconds that reading the documents and measuring the speed took.
        passage_tokens: mean number of tokens per passage; None: the mean over all texts.
        student_cost: a student's encoding time as a share of the teacher's.
        held_out: number of passages in held-out documents; None: unknown, at most `searched`.
        reading: seconds to read the file of these texts once, which is long for millions of documents.
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
    reading: float = 0.0

    @property
    def seconds(self) -> float:
        """The seconds to encode all texts."""
        return self.tokens / self.tokens_per_second

    def with_more(self, share: float) -> EmbeddingLoad:
        """The load with general texts added, which then are the given share of all words."""
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
        """The number of passages that checkpoints are scored on if the time suffices."""
        return min(self.searched, DEV_PASSAGES, DEV_WORDS / (self._passage_tokens * self.words / self.tokens))

    @property
    def _passage_tokens(self) -> float:
        return self.tokens / self.texts if self.passage_tokens is None else self.passage_tokens
