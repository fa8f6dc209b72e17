"""Divides the time of `compress` among encoding with the teacher, training and measuring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sentcompress.commands.shared import DEV_PASSAGES, LEAST_PASSAGES
from sentcompress.corpora.search_texts import DEV_WORDS

# Of all the time, the most that embedding, the searches of quantizer and export, the benchmark of the export and
# that of each candidate may take.
EMBEDDING, SEARCHES, BENCH, RACE = 0.25, 0.1, 0.05, 0.01
# Seconds of a stage besides its main work: loading, reading, tokenising, writing. A training takes as long as so many.
STAGE, TRAINING_STAGES = 3.0, 4
# Stages besides training and the searches of candidates: reading and embedding; quantizer, export, its search, bench.
# Those that follow the last training besides: two searches, and `average` and `select`, which are short, as one.
FIRST_STAGES, LAST_STAGES, CHOOSING_STAGES = 2, 4, 3
# Seconds to fit number formats to 1,000 passages and to search as many with each format; seconds to export graphs,
# calibrate and verify them, which take twice as long if a student needs so many seconds for a text.
FITTING, EXPORTING, EXPORTED = 6.0, 18.0, 0.006
# Of the training time, what the rounds before the last may take; and when there are any.
ROUNDS, FOR_ROUNDS = 0.3, 8 * 60.0
# A candidate that trains for a shorter time tells nothing about itself. The last training can be short: a published
# student is good from the start, and the start is kept if training makes it worse.
LEAST_TRIAL, LEAST_TRAINING = 45.0, 30.0
LEAST_TEXTS = 1000
# Passages that a student's search is measured among.
FEWEST_SEARCHED, MOST_SEARCHED = 1000, 20_000
# The least of both where the time would be too short otherwise: a published student is still good then, and the
# difference to the teacher is still seen, with a wider interval.
TIGHT_TEXTS, TIGHT_PASSAGES = 500, 300
# Training passages that a quantizer is fitted on, and sentences of the benchmark.
FITTED, BENCHED, LEAST_BENCHED = 20_000, 1000, 100
# Passes of `bench` over its sentences with one runtime: the rounds and one to warm up.
PASSES = 4
# How long a student takes to encode, as a share of the teacher's time, where its shape is not known; and, besides the
# share of multiplications, what takes as long for both.
STUDENT_COST, SAME_FOR_ALL = 0.5, 0.1
# The same of its int8 graph, as a share of its time in torch. On a processor with int8 instructions it is 0.3 to 0.5,
# see benchmarks/results/deployed_speed.md; on others, the graph can be hardly faster.
GRAPH_COST = 0.7


@dataclass(frozen=True)
class Budget:
    """The time of each step in seconds, and how many texts and passages there is time for.

    Attributes:
        seconds: of all.
        texts: how many texts the teacher embeds; None for all of them.
        words: of the texts that it embeds.
        embedding: seconds that this takes.
        rounds: seconds that each candidate trains for in each round before the last.
        last: seconds that the best trains for.
        passages: that searches are measured among.
        dev_passages: the same for checkpoints and candidates.
        sample: passages that number formats are fitted on.
        benched: sentences of the benchmark.
        benching, racing: the most seconds that the benchmark may take, and that of each candidate.
        measuring: seconds that searches, number formats, export and benchmark take.
        afterwards: seconds of these that are needed once the candidates of all rounds have been compared.
        tight: whether searches are among fewer passages than is usual at least, because the time is short.
        judged: seconds that the judged collection takes, besides all this.
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


class TooShortError(ValueError):
    """The time is too short to train.

    Attributes:
        needed: the seconds that would suffice.
        least: how they would be shared out.
    """

    def __init__(self, needed: float, least: Budget) -> None:
        super().__init__(f"needs {needed:.0f} s")
        self.needed, self.least = needed, least


def share_out(seconds: float, load: EmbeddingLoad, candidates: int) -> Budget:
    """Divide the time among the steps.

    Args:
        seconds: all of it.
        candidates: the number of shapes that could be tried; 0: nothing is trained.

    Raises:
        TooShortError: if no time is left to train.
    """
    if not candidates:
        return _budget(seconds, load, 0)
    found = _budget(seconds, load, candidates)
    if not found.rounds:
        # One candidate needs fewer searches.
        found = _budget(seconds, load, 1)
    if not _is_enough(found):
        found = _tightened(seconds, load)
    if not _is_enough(found):
        needed = _needed(seconds, load)
        raise TooShortError(needed, _budget(needed, load, 1, ease=0.0))
    return found


def _is_enough(budget: Budget) -> bool:
    return budget.last >= LEAST_TRAINING


def _tightened(seconds: float, load: EmbeddingLoad) -> Budget:
    """The budget of one candidate with as many texts and passages as leave time to train, or with the fewest."""
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        enough = _is_enough(_budget(seconds, load, 1, ease=middle))
        low, high = (middle, high) if enough else (low, middle)
    return _budget(seconds, load, 1, ease=low)


def _budget(seconds: float, load: EmbeddingLoad, candidates: int, ease: float = 1.0) -> Budget:
    """How the time is shared out.

    Args:
        ease: 1: with the usual numbers of texts and passages; 0: with the fewest.
    """
    embedding = _embedding(seconds, load, ease) if candidates else 0.0
    sampled = embedding / load.seconds if candidates and embedding < load.seconds else None
    measured = _measuring(seconds, load, candidates, ease)
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
        dev_passages=max(LEAST_PASSAGES, int(min(measured.passages, load.dev_passages))),
        sample=measured.sample,
        benched=measured.benched,
        benching=measured.benching,
        racing=RACE * seconds,
        measuring=measured.seconds,
        afterwards=measured.afterwards,
        tight=measured.passages < min(FEWEST_SEARCHED, load.searched),
    )


def _embedding(seconds: float, load: EmbeddingLoad, ease: float) -> float:
    usual = min(load.seconds, max(EMBEDDING * seconds, _seconds_of(LEAST_TEXTS, load)))
    return _between(min(usual, _seconds_of(TIGHT_TEXTS, load)), usual, ease)


def _seconds_of(texts: int, load: EmbeddingLoad) -> float:
    return min(texts, load.texts) / load.texts * load.seconds


def _between(least: float, usual: float, ease: float) -> float:
    return usual - (1 - ease) * (usual - least)  # exactly `usual` where both are equal


@dataclass(frozen=True)
class _Measuring:
    """Passages to search among and to fit on, sentences and seconds of the benchmark; seconds of all measuring.

    `afterwards` are those of them that come after the candidates have been compared.
    """

    passages: int
    sample: int
    benched: int
    benching: float
    seconds: float
    afterwards: float


def _measuring(seconds: float, load: EmbeddingLoad, candidates: int, ease: float) -> _Measuring:
    """What can be measured, and how long it takes.

    Every model encodes a passage once: its vector is cached. The teacher encodes the passages of the quantizer's
    search, first those that checkpoints are scored on, and of the search of the export only those of other held-out
    documents. A student encodes the passages of checkpoints when its training is over, and for its trial; for the
    quantizer the others, and the texts to fit on. Many of both are the same, since training passages fill up the
    collection. The export is searched by its graph. The score of a start is part of the training time.
    """
    student = load.student_cost if candidates else 1.0  # the teacher itself
    each, passage = load.exact_seconds_per_text, load.exact_seconds_per_passage
    passages = _passages(seconds, load, student, ease)
    benched, timed = _benchmark(seconds, load, student, ease)
    trials, raced = _trials(candidates), candidates if candidates > 1 else 0
    # Each candidate's speed beside the teacher's.
    racing = raced * min(RACE * seconds, LEAST_BENCHED * PASSES * (1 + student) * each)
    # Of fewer passages, number formats are fitted badly.
    sample = min(FITTED, max(passages, FEWEST_SEARCHED))
    searched, fitted = min(passages, load.searched), min(sample, load.texts)
    scored = min(passages, load.dev_passages) if candidates else 0
    own = _own(searched, load)
    compared = STAGE * ((1 + TRAINING_STAGES) * trials + raced) + 2 * trials * student * scored * passage + racing
    last = STAGE * (LAST_STAGES + (CHOOSING_STAGES + TRAINING_STAGES) * bool(candidates)) + timed
    by_teacher = searched - scored + own
    by_student = 3 * scored + max(0, fitted + searched - scored - _in_both(fitted, searched - own, load))
    last += (by_teacher + student * (by_student + GRAPH_COST * searched)) * passage
    last += FITTING * (fitted + searched) / 2000 + EXPORTING * (1 + student * each / EXPORTED)
    # The teacher encodes the passages of checkpoints for the first training.
    first = scored * passage
    compared, last = (compared + first, last) if trials else (compared, last + first)
    return _Measuring(
        passages=passages,
        sample=sample,
        benched=benched,
        benching=max(timed, BENCH * seconds),
        seconds=STAGE * FIRST_STAGES + compared + last,
        afterwards=last,
    )


def _passages(seconds: float, load: EmbeddingLoad, student: float, ease: float) -> int:
    """How many passages searches are among; a collection can have fewer."""
    each = (1.5 + student * (0.5 + GRAPH_COST)) * load.exact_seconds_per_passage
    passages = min(max(int(SEARCHES * seconds / each), FEWEST_SEARCHED), MOST_SEARCHED)
    if ease == 1:
        return passages
    return int(_between(TIGHT_PASSAGES, min(passages, max(load.searched, TIGHT_PASSAGES)), ease))


def _benchmark(seconds: float, load: EmbeddingLoad, student: float, ease: float) -> tuple[int, float]:
    """How many sentences the benchmark of the export has, and the seconds that it takes."""
    # The teacher and the export in torch, and the graph of the export.
    each = PASSES * (1 + 2 * student) * load.exact_seconds_per_text
    benched = min(BENCHED, max(LEAST_BENCHED, int(BENCH * seconds / each)))
    timed = min(benched, load.texts) * each
    return benched, _between(min(timed, BENCH * seconds), timed, ease)


def _own(searched: int, load: EmbeddingLoad) -> float:
    """Of the passages that are searched, those of the documents of one part's queries: at most half of them."""
    return min(searched, searched if load.held_out is None else load.held_out) / 2


def _in_both(fitted: int, others: float, load: EmbeddingLoad) -> float:
    """How many texts to fit on are surely among the searched passages that are not of the queries' documents.

    Both are the first by the same random order, of all training passages and of those of the collection. This has all
    of them, unless `split-documents` has cut it to MOST_SEARCHED passages. With two queries made from each, no more
    than half of the training texts are passages.
    """
    if load.searched < MOST_SEARCHED:
        return min(fitted, others)
    trained_on = 0.0 if load.held_out is None else max(0.0, load.searched - load.held_out)
    return min(fitted, others) * min(1.0, 2 * trained_on / load.texts)


def _needed(low: float, load: EmbeddingLoad) -> float:
    """The time from which on there is enough to train one candidate, above `low`, which is too short."""

    def enough(seconds: float) -> bool:
        return _is_enough(_budget(seconds, load, 1, ease=0.0))

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
