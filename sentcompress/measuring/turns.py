"""Measuring models in turns: all of them encode the same sentences in every round."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sentcompress.evaluation.timing import alternate
from sentcompress.measuring.contender import BATCH_TOKENS, Contender
from sentcompress.progress import Task

# Number of sentences and rounds for choosing the batch size; with a time limit, the most rounds.
TRIAL, TRIALS, MOST_TRIALS = 256, 2, 5
# Sentences for warming up before they are timed one at a time.
WARM_UP = 20
# With a time limit: sentences that measure the speed first, and the fewest to time in batches and one at a time.
FIRST, LEAST, LEAST_SINGLE = 8, 32, 8
# With a time limit, there can be too few texts to time a fast model reliably: it then encodes them repeatedly for about
# this many seconds.
STEADY = 0.3
# Shares of the limit: to choose batch sizes, and to time sentences one at a time.
CHOOSING, SINGLY = 0.25, 0.25


@dataclass(frozen=True)
class Extent:
    """The number of sentences and rounds that were timed.

    Attributes:
        batched: sentences encoded in batches in each of `rounds`.
        single: sentences encoded one at a time in each of `single_rounds`.
    """

    batched: int
    rounds: int
    single: int
    single_rounds: int


def take_turns(
    contenders: Sequence[Contender],
    texts: Sequence[str],
    single: Sequence[str],
    rounds: int,
    task: Task,
    seconds: float | None = None,
) -> Extent:
    """Time all contenders, alternating in every round: `texts` in batches, then each text of `single` by itself.

    Args:
        seconds: approximate time limit. To meet it, fewer texts are timed, and fewer rounds if they take longer than
            expected. All contenders still encode the same texts.
    """
    if seconds is None:
        for contender in contenders:
            contender.pick_batch(texts[:TRIAL], task, TRIALS)
        return _timed(contenders, texts, single, rounds, task)
    ends = time.perf_counter() + seconds
    each = _pick_batches(contenders, texts, CHOOSING * seconds, task)
    in_batches = ends - SINGLY * seconds
    # All but the slowest may repeat their passes, for STEADY seconds in each round.
    repeating = rounds * STEADY * (len(contenders) - 1)
    texts = texts[: max(LEAST, _fitting(in_batches - repeating, (rounds + 1) * each))]
    return _timed(contenders, texts, single, rounds, task, in_batches, ends)


def _pick_batches(contenders: Sequence[Contender], texts: Sequence[str], seconds: float, task: Task) -> float:
    """Choose batch sizes on as many texts as fit into the time; returns the seconds of one text with all contenders."""
    ends = time.perf_counter() + seconds
    each = sum(contender.pick_batch(texts[:FIRST], task, 1) for contender in contenders)
    more = min(TRIAL, _fitting(ends, 2 * len(BATCH_TOKENS) * each))
    if more < 2 * FIRST:
        return each
    share = max(0.0, ends - time.perf_counter()) / len(contenders)
    return sum(contender.pick_batch(texts[:more], task, MOST_TRIALS, share) for contender in contenders)


def _timed(
    contenders: Sequence[Contender],
    texts: Sequence[str],
    single: Sequence[str],
    rounds: int,
    task: Task,
    in_batches: float | None = None,
    ends: float | None = None,
) -> Extent:
    """Time all contenders in batches until `in_batches`, then one sentence at a time until `ends`."""
    passes = {one.key: 1 if ends is None else _steady_passes(one, texts, task) for one in contenders}
    runs = {one.key: partial(one.encode_all, texts, task, passes[one.key]) for one in contenders}
    whole = alternate(runs, rounds, in_batches, warm_up=ends is None)
    for contender in contenders:
        contender.whole = [seconds / passes[contender.key] for seconds in whole[contender.key]]
    warm_up = single[: WARM_UP if ends is None else LEAST_SINGLE]
    began = time.perf_counter()
    for contender in contenders:
        contender.warm_up(warm_up)
    if ends is not None:
        each = (time.perf_counter() - began) / len(warm_up)
        single = single[: max(LEAST_SINGLE, _fitting(ends, rounds * each))]
    alternate({one.key: partial(one.encode_singly, single, task) for one in contenders}, rounds, ends, warm_up=False)
    return Extent(len(texts), len(contenders[0].whole), len(single), len(contenders[0].single))


def _steady_passes(contender: Contender, texts: Sequence[str], task: Task) -> int:
    """How often to encode the texts in a round; warms up."""
    began = time.perf_counter()
    contender.encode_all(texts, task)
    return max(1, math.ceil(STEADY / max(time.perf_counter() - began, 1e-3)))


def _fitting(ends: float, each: float) -> int:
    """The number of items that can be done until `ends` at this many seconds each."""
    return max(0, int((ends - time.perf_counter()) / max(each, 1e-9)))


def work_of(contenders: Sequence[Contender], texts: Sequence[str], single: Sequence[str], rounds: int) -> int:
    """The number of sentences that `take_turns` encodes without a limit, for its progress bar."""
    trial = (1 + TRIALS) * len(BATCH_TOKENS) * len(texts[:TRIAL])
    return len(contenders) * (trial + (rounds + 1) * len(texts) + rounds * len(single))
