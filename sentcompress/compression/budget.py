"""How the time of a compression is shared out."""

from __future__ import annotations

from dataclasses import dataclass

from sentcompress.compression.recipe import Budget

# Of all the time: the most that embedding may take, and what reading, starts, scores and the export take.
EMBEDDING, OTHER = 0.3, 0.2
# Seconds that these take at least.
LEAST_OTHER = 60.0
# Of the training time, what the rounds before the last may take; and when there are any.
ROUNDS, FOR_ROUNDS = 0.3, 8 * 60.0
# A candidate that trains for a shorter time tells nothing about itself.
LEAST_TRIAL, LEAST_TRAINING = 45.0, 60.0
LEAST_TEXTS = 1000


@dataclass(frozen=True)
class EmbeddingLoad:
    """What the documents hold, and how fast the teacher reads.

    Attributes:
        texts: passages, titles and queries to train on.
        tokens: of all of them.
        tokens_per_second: of the teacher.
    """

    texts: int
    tokens: int
    tokens_per_second: float

    @property
    def seconds(self) -> float:
        """The time to embed all texts."""
        return self.tokens / self.tokens_per_second


class TooShortError(ValueError):
    """There is no time to train.

    Attributes:
        needed: the seconds that would do.
    """

    def __init__(self, needed: float) -> None:
        super().__init__(f"needs {needed:.0f} s")
        self.needed = needed


def share_out(seconds: float, load: EmbeddingLoad, candidates: int, max_bytes: int, vector_bytes: int) -> Budget:
    """The parts of the time.

    Args:
        seconds: all of it.
        candidates: the number of shapes that could be tried; 0: nothing is trained.

    Raises:
        TooShortError: if nothing could be learnt in that time.
    """
    embedding = _embedding(seconds, load)
    texts = None if embedding == load.seconds else int(load.texts * embedding / load.seconds)
    if not candidates:
        return Budget(max_bytes, vector_bytes, seconds, texts, embedding, (), 0.0)
    training = _training(seconds, load)
    if training < LEAST_TRAINING:
        raise TooShortError(_needed(seconds, load))
    rounds: tuple[float, ...] = ()
    if candidates > 1 and training >= FOR_ROUNDS:
        each = ROUNDS * training / _trials(candidates)
        if each >= LEAST_TRIAL:
            rounds = tuple(each / 60 for _ in _counts(candidates))
    last = training - sum(60 * minutes * count for minutes, count in zip(rounds, _counts(candidates), strict=False))
    return Budget(max_bytes, vector_bytes, seconds, texts, embedding, rounds, last / 60)


def _embedding(seconds: float, load: EmbeddingLoad) -> float:
    least = min(LEAST_TEXTS, load.texts) / load.texts * load.seconds
    return min(load.seconds, max(EMBEDDING * seconds, least))


def _training(seconds: float, load: EmbeddingLoad) -> float:
    return seconds - _embedding(seconds, load) - max(OTHER * seconds, LEAST_OTHER)


def _needed(low: float, load: EmbeddingLoad) -> float:
    """The time from which on there is enough to train, above `low`, which is too short."""
    high = 2 * low
    while _training(high, load) < LEAST_TRAINING:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if _training(middle, load) >= LEAST_TRAINING else (middle, high)
    return high


def _counts(candidates: int) -> list[int]:
    """The number of candidates in each round before the last: each keeps the better half."""
    counts = []
    while candidates > 1:
        counts.append(candidates)
        candidates //= 2
    return counts


def _trials(candidates: int) -> int:
    return sum(_counts(candidates))
