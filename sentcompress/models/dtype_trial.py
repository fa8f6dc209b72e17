"""Is bfloat16 faster than float32 with this model on this CPU? A trial that other work on the machine cannot decide.

Both run on one thread, and what counts is the processor time of that thread. The wall time of several threads grows
with other load, since they wait for one another, and so does their processor time, since they spin while they wait.
Measured with all-MiniLM-L6-v2 on two cores, the ratio of single rounds (5th to 95th percentile of 84):

    other busy processes              0               2               4
    two threads, wall time      1.76 to 2.51    0.49 to 5.24    0.43 to 3.08
    two threads, CPU time       1.72 to 2.45    0.50 to 5.29    0.49 to 3.16
    one thread, CPU time        1.79 to 1.99    1.92 to 2.15    1.85 to 2.10
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

# bfloat16 costs accuracy (cosines to float32 of about 0.9999), so it has to be worth it.
WORTHWHILE = 1.15
# Of fewer rounds no interval of the median covers 95%; after more of them the answer does not change.
FEWEST, MOST = 6, 24
# Seconds on the clock after which no further round begins.
LONGEST = 8.0
COVERAGE = 0.95


@dataclass(frozen=True)
class Speedup:
    """How many times as fast as float32 bfloat16 was, in each round.

    Attributes:
        ratios: seconds in float32 over seconds in bfloat16.
    """

    ratios: Sequence[float]

    @property
    def ratio(self) -> float:
        """The median."""
        return statistics.median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """Between these the true median lies with a confidence of 95%; of fewer than FEWEST rounds, all there is."""
        ordered, outside = sorted(self.ratios), ranks_outside(len(self.ratios))
        return ordered[outside], ordered[-1 - outside]

    @property
    def certain(self) -> bool:
        """Whether the interval holds no other answer."""
        if len(self.ratios) < FEWEST:
            return False
        low, high = self.interval
        return low >= WORTHWHILE or high < WORTHWHILE

    @property
    def dtype(self) -> str:
        """The faster format; float32 unless bfloat16 is worth it."""
        return "bfloat16" if self.ratio >= WORTHWHILE else "float32"

    def reason(self, what: str) -> str:
        """Why that format, with how sure it is.

        Args:
            what: what the model was timed at, as in "encodes".
        """
        low, high = self.interval
        rounds = f"{len(self.ratios)} round{'s' * (len(self.ratios) > 1)}"
        doubt = "" if self.certain else "; not certain"
        return (
            f"measured: bfloat16 {what} {self.ratio:.2f} times as fast as float32 "
            f"({low:.2f} to {high:.2f} in {rounds}{doubt})"
        )


def ranks_outside(rounds: int) -> int:
    """How many of the smallest and of the largest values lie outside the median's interval (a sign test)."""
    outside, tail = 0, 0.5**rounds
    while (outside + 1) * 2 < rounds and tail + math.comb(rounds, outside + 1) * 0.5**rounds <= (1 - COVERAGE) / 2:
        outside += 1
        tail += math.comb(rounds, outside) * 0.5**rounds
    return outside


def measure(
    float32: Callable[[], object],
    bfloat16: Callable[[], object],
    *,
    cpu_clock: Callable[[], float] = time.thread_time,
    wall_clock: Callable[[], float] = time.monotonic,
) -> Speedup:
    """Time two calls in turns until the answer is certain, after MOST rounds, or after LONGEST seconds.

    Args:
        float32, bfloat16: the same work in either format.
        cpu_clock: processor seconds of this thread.
        wall_clock: seconds.
    """
    started = wall_clock()

    def late() -> bool:
        return wall_clock() - started >= LONGEST

    def ratio_of(first: Callable[[], object], second: Callable[[], object]) -> float:
        seconds = {call: _seconds(call, cpu_clock) for call in (first, second)}
        return seconds[float32] / seconds[bfloat16]

    with _one_thread():
        warm_up = ratio_of(float32, bfloat16)
        if late():  # which no warming up explains
            return Speedup([warm_up])
        found = Speedup([])
        while not (found.certain or len(found.ratios) >= MOST or (found.ratios and late())):
            # Back and forth: whoever always went second would find a warmer machine.
            order = (float32, bfloat16) if len(found.ratios) % 2 == 0 else (bfloat16, float32)
            found = Speedup([*found.ratios, ratio_of(*order)])
        return found


def _seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    # A clock may be too coarse for a tiny model.
    return max(clock() - start, 1e-9)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
