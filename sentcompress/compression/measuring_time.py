"""Estimates how long a compression takes for everything but encoding the training texts and training."""

from __future__ import annotations

from dataclasses import dataclass

from sentcompress.compression.embedding_load import EmbeddingLoad

# Largest shares of the total time: for the searches of quantizer and export, for the benchmark of the export, and for
# the benchmark of each candidate.
SEARCHES, BENCH, RACE = 0.1, 0.05, 0.01
# Largest share of the total time for one dev score in training, unless only TIGHT_PASSAGES are searched: otherwise, the
# scores at the start and at the end would leave no time to train.
SCORING = 0.04
# Safety margin on the time for everything after the last training: nothing later can make up for a wrong estimate.
MARGIN = 0.1
# Overhead of a stage in seconds (loading, reading, tokenising, writing), and of training as a multiple of it.
STAGE, TRAINING_STAGES = 2.0, 4
# Number of stages before training (reading, encoding) and after it (quantizer, export, its search, bench). Additional
# stages if weights are averaged: two searches, and `average` and `select`, which are short and count as one.
FIRST_STAGES, LAST_STAGES, CHOOSING_STAGES = 2, 4, 3
# How long `augment` takes to sample the training texts, and `fit-quantizer` and `export` together, as multiples of the
# time to read them once: 5.3 and 3.8 with 70,000 texts.
READ_FIRST, READ_LAST = 6.0, 4.0
# Seconds to fit number formats to 1,000 passages and to search 1,000 with each format. Seconds to export, calibrate and
# verify graphs; they double for a student that needs EXPORTED seconds per text.
FITTING, EXPORTING, EXPORTED = 5.0, 16.0, 0.006
# Limits of the number of passages searched. TIGHT_PASSAGES is the lower limit if the time is short: the difference from
# the teacher can still be measured with so few, with a wider interval.
FEWEST_SEARCHED, MOST_SEARCHED, TIGHT_PASSAGES = 1000, 20_000, 300
# How often a student encodes the passages, not counting those in the cache.
SEARCHED_BY_STUDENT = 1.2
# Number of training passages that a quantizer is fitted on, and of sentences in the benchmark.
FITTED, BENCHED, LEAST_BENCHED = 20_000, 1000, 100
# Passes of `bench` over its sentences with one runtime: its rounds, and a warm-up.
PASSES = 4
# Encoding time of a student's int8 graph, as a share of its time in torch. On a processor with int8 instructions, it is
# 0.3 to 0.5 (benchmarks/results/deployed_speed.md); on others, the graph may be hardly faster than torch.
GRAPH_COST = 0.5


def eased(least: float, usual: float, ease: float) -> float:
    """Interpolate between the least value (`ease` 0) and the usual one (`ease` 1)."""
    return usual - (1 - ease) * (usual - least)  # exactly `usual` where both are equal


@dataclass(frozen=True)
class Measuring:
    """The sizes of the measurements, and how long they take.

    Attributes:
        passages: number of passages searched by the final measurements.
        scored: number of passages searched to score checkpoints.
        sample: number of passages that number formats are fitted on.
        benched: number of sentences of the benchmark.
        benching: time limit of the benchmark in seconds.
        seconds: time for all measurements, and for reading the training texts.
        afterwards: the part of `seconds` that comes after all candidates were compared.
    """

    passages: int
    scored: float
    sample: int
    benched: int
    benching: float
    seconds: float
    afterwards: float


def measuring_of(
    seconds: float, load: EmbeddingLoad, candidates: int, trials: int, ease: float, *, averaged: bool
) -> Measuring:
    """Estimate what can be measured in the given time, and how long it takes.

    Every model encodes a passage only once, because vectors are cached. The teacher encodes the passages that
    checkpoints are scored on, then the other passages of the quantizer's search, then those passages of the export's
    search that are from other held-out documents. A student encodes the passages of checkpoints after its training and
    for its comparison with others, and for the quantizer the other passages and the texts to fit on. Many of these
    are the same, because training passages fill up the collection. The graph of the export encodes the passages of its
    own search. The score before training is part of the training time. If weights are not averaged, the last student
    is not compared.

    Args:
        seconds: total time of the compression.
        candidates: number of candidates that are trained; 0 if nothing is trained.
        trials: number of comparisons of candidates in all rounds before the last.
        ease: from 0 for the fewest passages to 1 for the usual number.
        averaged: whether the weights of the last student are averaged with its initial ones.
    """
    student = load.student_cost if candidates else 1.0  # the teacher itself
    each, passage = load.exact_seconds_per_text, load.exact_seconds_per_passage
    passages = _passages(seconds, load, student, ease)
    benched, timed = _benchmark(seconds, load, student, ease)
    raced = candidates if candidates > 1 else 0
    # The benchmark of each candidate includes the teacher.
    racing = raced * min(RACE * seconds, LEAST_BENCHED * PASSES * (1 + student) * each)
    # Number formats fitted on fewer passages are poor.
    sample = min(FITTED, max(passages, FEWEST_SEARCHED))
    searched, fitted = min(passages, load.searched), min(sample, load.texts)
    scored = min(passages, _scored(seconds, load, student)) if candidates else 0
    own = _own(searched, load)
    compared = STAGE * ((1 + TRAINING_STAGES) * trials + raced) + 2 * trials * student * scored * passage + racing
    last = STAGE * (LAST_STAGES + (CHOOSING_STAGES * averaged + TRAINING_STAGES) * bool(candidates)) + timed
    by_teacher = searched - scored + own
    # The last student and the average; the vectors of the better one are in the cache afterwards.
    tried, cached = (2 * scored, scored) if averaged else (0, 0)
    by_student = scored + tried + max(0, fitted + searched - cached - _in_both(fitted, searched - own, load))
    last += (by_teacher + student * (by_student + GRAPH_COST * searched)) * passage
    last += FITTING * (fitted + searched) / 2000 + EXPORTING * (1 + student * each / EXPORTED)
    last += READ_LAST * load.reading
    # The teacher encodes the passages of checkpoints for the first training.
    first = scored * passage
    compared, last = (compared + first, last) if trials else (compared, last + first)
    last *= 1 + MARGIN
    return Measuring(
        passages=passages,
        scored=scored,
        sample=sample,
        benched=benched,
        benching=max(timed, BENCH * seconds),
        seconds=STAGE * FIRST_STAGES + READ_FIRST * load.reading + compared + last,
        afterwards=last,
    )


def _passages(seconds: float, load: EmbeddingLoad, student: float, ease: float) -> int:
    """The number of passages to search; a collection can have fewer."""
    each = (1.5 + SEARCHED_BY_STUDENT * student) * load.exact_seconds_per_passage
    passages = min(max(int(SEARCHES * seconds / each), FEWEST_SEARCHED), MOST_SEARCHED)
    if ease == 1:
        return passages
    return int(eased(TIGHT_PASSAGES, min(passages, max(load.searched, TIGHT_PASSAGES)), ease))


def _scored(seconds: float, load: EmbeddingLoad, student: float) -> float:
    """The number of passages to search to score checkpoints."""
    in_time = SCORING * seconds / (student * load.exact_seconds_per_passage) if student else load.dev_passages
    return min(load.dev_passages, max(TIGHT_PASSAGES, in_time))


def _benchmark(seconds: float, load: EmbeddingLoad, student: float, ease: float) -> tuple[int, float]:
    """The number of sentences of the export's benchmark, and the seconds that it takes."""
    # The teacher and the export in torch, and the graph of the export.
    each = PASSES * (1 + student * (1 + GRAPH_COST)) * load.exact_seconds_per_text
    benched = min(BENCHED, max(LEAST_BENCHED, int(BENCH * seconds / each)))
    timed = min(benched, load.texts) * each
    return benched, eased(min(timed, BENCH * seconds), timed, ease)


def _own(searched: int, load: EmbeddingLoad) -> float:
    """The number of searched passages from the documents of one part's queries: at most half of them."""
    return min(searched, searched if load.held_out is None else load.held_out) / 2


def _in_both(fitted: int, others: float, load: EmbeddingLoad) -> float:
    """A lower bound for the number of texts to fit on that are also among the searched training passages.

    Both samples are taken in the same random order, from all training passages and from those in the collection. The
    collection has all of them, unless `split-documents` has limited it to MOST_SEARCHED passages. With two queries per
    passage, at most half of the training texts are passages.
    """
    if load.searched < MOST_SEARCHED:
        return min(fitted, others)
    trained_on = 0.0 if load.held_out is None else max(0.0, load.searched - load.held_out)
    return min(fitted, others) * min(1.0, 2 * trained_on / load.texts)
