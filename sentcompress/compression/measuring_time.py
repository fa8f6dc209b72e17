"""What searches, number formats, the export and benchmarks of a compression take of its time."""

from __future__ import annotations

from dataclasses import dataclass

from sentcompress.compression.embedding_load import EmbeddingLoad

# Of all the time, the most that the searches of quantizer and export, the benchmark of the export and that of each
# candidate may take.
SEARCHES, BENCH, RACE = 0.1, 0.05, 0.01
# Of all the time, the most that a student's score during its training may take, unless that is among TIGHT_PASSAGES:
# the scores of start and end would leave no time to train.
SCORING = 0.04
# The share by which the estimate of all that follows the last training is raised: nothing later can make up for it.
MARGIN = 0.1
# Seconds of a stage besides its main work: loading, reading, tokenising, writing. A training takes as long as so many.
STAGE, TRAINING_STAGES = 2.0, 4
# Stages besides training and the searches of candidates: reading and embedding; quantizer, export, its search, bench.
# Those that follow it if weights are averaged: two searches, and `average` and `select`, which are short, as one.
FIRST_STAGES, LAST_STAGES, CHOOSING_STAGES = 2, 4, 3
# Seconds to fit number formats to 1,000 passages and to search as many with each format; seconds to export graphs,
# calibrate and verify them, which take twice as long if a student needs so many seconds for a text.
FITTING, EXPORTING, EXPORTED = 5.0, 16.0, 0.006
# Passages that a student's search is measured among; and the fewest where the time would be too short otherwise: the
# difference to the teacher is still seen then, with a wider interval.
FEWEST_SEARCHED, MOST_SEARCHED, TIGHT_PASSAGES = 1000, 20_000, 300
# How often a student encodes the passages, besides those that it has encoded before.
SEARCHED_BY_STUDENT = 1.2
# Training passages that a quantizer is fitted on, and sentences of the benchmark.
FITTED, BENCHED, LEAST_BENCHED = 20_000, 1000, 100
# Passes of `bench` over its sentences with one runtime: the rounds and one to warm up.
PASSES = 4
# How long the int8 graph of a student takes, as a share of its time in torch. On a processor with int8 instructions it
# is 0.3 to 0.5, see benchmarks/results/deployed_speed.md; on others, the graph can be hardly faster.
GRAPH_COST = 0.5


def eased(least: float, usual: float, ease: float) -> float:
    """Between the usual value, where `ease` is 1, and the least, where it is 0."""
    return usual - (1 - ease) * (usual - least)  # exactly `usual` where both are equal


@dataclass(frozen=True)
class Measuring:
    """What is measured, and how long it takes.

    Attributes:
        passages: that searches are among.
        scored: passages that checkpoints are scored among.
        sample: passages that number formats are fitted on.
        benched: sentences of the benchmark.
        benching: the most seconds that the benchmark may take.
        seconds: of all measuring.
        afterwards: of these, those that come after the candidates have been compared.
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
    """What can be measured, and how long it takes.

    Every model encodes a passage once: its vector is cached. The teacher encodes the passages of the quantizer's
    search, first those that checkpoints are scored on, and of the search of the export only those of other held-out
    documents. A student encodes the passages of checkpoints when its training is over, and for its trial; for the
    quantizer the others, and the texts to fit on. Many of both are the same, since training passages fill up the
    collection. The export is searched by its graph. The score of a start is part of the training time. If weights are
    not averaged, the last student has no trial.

    Args:
        seconds: of the whole compression.
        candidates: that are trained; 0: nothing is.
        trials: how often a candidate is compared with the others, in all rounds before the last.
        ease: 1: with the usual number of passages; 0: with the fewest.
        averaged: whether the weights of the last student are averaged with those of its start.
    """
    student = load.student_cost if candidates else 1.0  # the teacher itself
    each, passage = load.exact_seconds_per_text, load.exact_seconds_per_passage
    passages = _passages(seconds, load, student, ease)
    benched, timed = _benchmark(seconds, load, student, ease)
    raced = candidates if candidates > 1 else 0
    # Each candidate's speed beside the teacher's.
    racing = raced * min(RACE * seconds, LEAST_BENCHED * PASSES * (1 + student) * each)
    # Of fewer passages, number formats are fitted badly.
    sample = min(FITTED, max(passages, FEWEST_SEARCHED))
    searched, fitted = min(passages, load.searched), min(sample, load.texts)
    scored = min(passages, _scored(seconds, load, student)) if candidates else 0
    own = _own(searched, load)
    compared = STAGE * ((1 + TRAINING_STAGES) * trials + raced) + 2 * trials * student * scored * passage + racing
    last = STAGE * (LAST_STAGES + (CHOOSING_STAGES * averaged + TRAINING_STAGES) * bool(candidates)) + timed
    by_teacher = searched - scored + own
    # The last student and the average; the better one's vectors are then in the cache.
    tried, cached = (2 * scored, scored) if averaged else (0, 0)
    by_student = scored + tried + max(0, fitted + searched - cached - _in_both(fitted, searched - own, load))
    last += (by_teacher + student * (by_student + GRAPH_COST * searched)) * passage
    last += FITTING * (fitted + searched) / 2000 + EXPORTING * (1 + student * each / EXPORTED)
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
        seconds=STAGE * FIRST_STAGES + compared + last,
        afterwards=last,
    )


def _passages(seconds: float, load: EmbeddingLoad, student: float, ease: float) -> int:
    """How many passages searches are among; a collection can have fewer."""
    each = (1.5 + SEARCHED_BY_STUDENT * student) * load.exact_seconds_per_passage
    passages = min(max(int(SEARCHES * seconds / each), FEWEST_SEARCHED), MOST_SEARCHED)
    if ease == 1:
        return passages
    return int(eased(TIGHT_PASSAGES, min(passages, max(load.searched, TIGHT_PASSAGES)), ease))


def _scored(seconds: float, load: EmbeddingLoad, student: float) -> float:
    """How many passages checkpoints are scored among."""
    in_time = SCORING * seconds / (student * load.exact_seconds_per_passage) if student else load.dev_passages
    return min(load.dev_passages, max(TIGHT_PASSAGES, in_time))


def _benchmark(seconds: float, load: EmbeddingLoad, student: float, ease: float) -> tuple[int, float]:
    """How many sentences the benchmark of the export has, and the seconds that it takes."""
    # The teacher and the export in torch, and the graph of the export.
    each = PASSES * (1 + student * (1 + GRAPH_COST)) * load.exact_seconds_per_text
    benched = min(BENCHED, max(LEAST_BENCHED, int(BENCH * seconds / each)))
    timed = min(benched, load.texts) * each
    return benched, eased(min(timed, BENCH * seconds), timed, ease)


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
