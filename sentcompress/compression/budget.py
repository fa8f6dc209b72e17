"""Divides the time of `compress` among encoding with the teacher, training and measuring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sentcompress.commands.shared import LEAST_PASSAGES
from sentcompress.compression.embedding_load import EmbeddingLoad
from sentcompress.compression.measuring_time import FEWEST_SEARCHED, RACE, eased, measuring_of

# Largest share of the total time for encoding with the teacher.
EMBEDDING = 0.25
# Share of the training time for the rounds before the last, and the least training time with more than one round.
ROUNDS, FOR_ROUNDS = 0.3, 8 * 60.0
# Least seconds of training. A comparison of candidates after less time means nothing. The last training can be shorter:
# a published student is good from the start, and the initial weights are kept if training makes them worse.
LEAST_TRIAL, LEAST_TRAINING = 45.0, 30.0
# Fewest texts for the teacher to encode: usually, and if there would otherwise be no time to train. A published student
# is still good with so few.
LEAST_TEXTS, TIGHT_TEXTS = 1000, 500
# Number of texts in the sentence table if nothing is trained: it is then only for the benchmark.
BENCH_TEXTS = 20_000


@dataclass(frozen=True)
class Budget:
    """The time of each step in seconds, and the numbers of texts and passages that fit into it.

    Attributes:
        seconds: total time.
        texts: number of texts that the teacher encodes, or if nothing is trained, that the benchmark draws from; None
            for all of them.
        words: number of words in these texts.
        embedding: time for encoding them.
        rounds: training time of each candidate, for every round before the last.
        last: training time of the last round, in which only the best candidate is trained.
        passages: number of passages searched by the final measurements.
        dev_passages: number of passages searched to score checkpoints and candidates.
        sample: number of passages that number formats are fitted on.
        benched: number of sentences of the benchmark.
        benching, racing: time limit of the final benchmark, and of the benchmark of each candidate.
        measuring: time for searches, number formats, the export and benchmarks.
        afterwards: the part of `measuring` that comes after all candidates were compared.
        tight: whether fewer passages are searched than the usual minimum, because the time is short.
        judged: additional time for the judged collection.
        spent: what reading the documents and measuring the teacher's speed took.
    """

    seconds: float
    texts: int | None
    words: int
    embedding: float
    rounds: Sequence[float]
    last: float
    passages: int
    dev_passages: int
    sample: int
    benched: int
    benching: float
    racing: float
    measuring: float
    afterwards: float
    tight: bool = False
    judged: float = 0.0
    spent: float = 0.0


class TooShortError(ValueError):
    """The time is too short to train.

    Attributes:
        needed: the time in seconds that would be enough.
        least: the budget for this time.
    """

    def __init__(self, needed: float, least: Budget) -> None:
        super().__init__(f"needs {needed:.0f} s")
        self.needed, self.least = needed, least


def share_out(
    seconds: float, load: EmbeddingLoad, candidates: int, averaged: Callable[[bool], bool] = lambda _: True
) -> Budget:
    """Divide the time among the steps.

    Args:
        seconds: total time.
        candidates: the number of shapes that could be tried; 0: nothing is trained.
        averaged: whether the trained weights are averaged with the initial ones, as a function of whether candidates
            are compared.

    Raises:
        TooShortError: if no time is left to train.
    """
    if not candidates:
        return _budget(seconds, load, 0, averaged=False)
    found = _budget(seconds, load, candidates, averaged=averaged(candidates > 1))
    alone = averaged(False)
    if not found.rounds:
        # One candidate needs fewer searches.
        found = _budget(seconds, load, 1, averaged=alone)
    if not _is_enough(found):
        found = _tightened(seconds, load, averaged=alone)
    if not _is_enough(found):
        needed = _needed(seconds, load, averaged=alone)
        raise TooShortError(needed, _budget(needed, load, 1, ease=0.0, averaged=alone))
    return found


def _is_enough(budget: Budget) -> bool:
    return budget.last >= LEAST_TRAINING


def _tightened(seconds: float, load: EmbeddingLoad, *, averaged: bool) -> Budget:
    """The budget of one candidate, with as many texts and passages as possible that still leave time to train."""
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        enough = _is_enough(_budget(seconds, load, 1, ease=middle, averaged=averaged))
        low, high = (middle, high) if enough else (low, middle)
    return _budget(seconds, load, 1, ease=low, averaged=averaged)


def _budget(seconds: float, load: EmbeddingLoad, candidates: int, ease: float = 1.0, *, averaged: bool) -> Budget:
    """The budget, even if it leaves no time to train.

    Args:
        ease: from 0 for the fewest texts and passages to 1 for the usual numbers.
        averaged: whether the trained weights are averaged with the initial ones.
    """
    embedding = _embedding(seconds, load, ease) if candidates else 0.0
    if candidates:
        sampled = embedding / load.seconds if embedding < load.seconds else None
    else:
        sampled = BENCH_TEXTS / load.texts if load.texts > BENCH_TEXTS else None
    measured = measuring_of(seconds, load, candidates, _trials(candidates), ease, averaged=averaged)
    training = seconds - load.spent - embedding - measured.seconds
    rounds: tuple[float, ...] = ()
    if candidates > 1 and training >= FOR_ROUNDS:
        each = ROUNDS * training / _trials(candidates)
        if each >= LEAST_TRIAL:
            rounds = tuple(each for _ in _counts(candidates))
    in_rounds = sum(each * count for each, count in zip(rounds, _counts(candidates), strict=False))
    return Budget(
        seconds=seconds,
        texts=None if sampled is None else int(load.texts * sampled),
        words=load.words if sampled is None else int(load.words * sampled),
        embedding=embedding,
        rounds=rounds,
        last=training - in_rounds if candidates else 0.0,
        passages=measured.passages,
        dev_passages=max(LEAST_PASSAGES, int(measured.scored)),
        sample=measured.sample,
        benched=measured.benched,
        benching=measured.benching,
        racing=RACE * seconds,
        measuring=measured.seconds,
        afterwards=measured.afterwards,
        tight=measured.passages < min(FEWEST_SEARCHED, load.searched),
        spent=load.spent,
    )


def _embedding(seconds: float, load: EmbeddingLoad, ease: float) -> float:
    usual = min(load.seconds, max(EMBEDDING * seconds, _seconds_of(LEAST_TEXTS, load)))
    return eased(min(usual, _seconds_of(TIGHT_TEXTS, load)), usual, ease)


def _seconds_of(texts: int, load: EmbeddingLoad) -> float:
    return min(texts, load.texts) / load.texts * load.seconds


def _needed(low: float, load: EmbeddingLoad, *, averaged: bool) -> float:
    """The least time that is enough to train one candidate; `low` is known to be too short."""

    def enough(seconds: float) -> bool:
        return _is_enough(_budget(seconds, load, 1, ease=0.0, averaged=averaged))

    high = 2 * low
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def better_half(candidates: int) -> int:
    """How many candidates a round keeps."""
    return max(1, candidates // 2)


def _counts(candidates: int) -> list[int]:
    """The number of candidates in each round before the last."""
    counts = []
    while candidates > 1:
        counts.append(candidates)
        candidates = better_half(candidates)
    return counts


def _trials(candidates: int) -> int:
    return sum(_counts(candidates))
