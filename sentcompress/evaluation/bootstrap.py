"""How far the mean of per-item scores may be off: percentile bootstrap intervals.

Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13; for two systems on the same items the
differences are resampled, so that what both find hard or easy cancels out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ROUNDS = 1000
CONFIDENCE = 0.95
# Numbers that are held at a time.
BLOCK = 2**22


class Interval(NamedTuple):
    """Between `low` and `high` lies the share `CONFIDENCE` of the resampled means."""

    low: float
    high: float


def mean_interval(values: npt.NDArray[np.floating], seed: int, rounds: int = ROUNDS) -> Interval:
    """The interval of the mean of [N] values, each of `rounds` samples drawn from them with replacement.

    Raises:
        ValueError: if there are no values, or one is no number.
    """
    if len(values) == 0 or not np.isfinite(values).all():
        raise ValueError("an interval needs values, all of them finite")
    # Scores take few distinct values (reciprocal ranks eleven), and how often each is drawn is multinomial.
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    generator = np.random.default_rng(seed)
    means = np.empty(rounds)
    step = max(1, BLOCK // len(distinct))
    for start in range(0, rounds, step):
        drawn = generator.multinomial(len(values), counts / len(values), size=min(step, rounds - start))
        means[start : start + len(drawn)] = drawn @ distinct / len(values)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(means, (tail, 100 - tail))
    return Interval(float(low), float(high))


def paired_mean_interval(
    ours: npt.NDArray[np.floating], theirs: npt.NDArray[np.floating], seed: int, rounds: int = ROUNDS
) -> Interval:
    """The interval of mean(ours - theirs), both [N] scores of the same items in the same order.

    Raises:
        ValueError: as `mean_interval`, or if the two differ in number.
    """
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} and {len(theirs)} scores are not of the same items")
    return mean_interval(np.asarray(ours, dtype=np.float64) - theirs, seed, rounds)
