"""Measure whether bfloat16 is faster than float32 with a model on this CPU, unaffected by other load on the machine.

Both formats run on one thread, and the CPU time of that thread is compared. With several threads, both wall time and
CPU time grow with other load, since the threads wait for one another and spin while they wait. Speedup of single
rounds with all-MiniLM-L6-v2 on two cores (5th to 95th percentile of 84 rounds):

    other busy processes              0               2               4
    two threads, wall time      1.76 to 2.51    0.49 to 5.24    0.43 to 3.08
    two threads, CPU time       1.72 to 2.45    0.50 to 5.29    0.49 to 3.16
    one thread, CPU time        1.79 to 1.99    1.92 to 2.15    1.85 to 2.10
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from sentcompress.models.devices import dtype_candidates
from sentcompress.models.threads import one_thread
from sentcompress.quantities import counted

# Minimum speedup for which bfloat16 is used: it costs accuracy (cosines to float32 of about 0.9999).
WORTHWHILE = 1.15
# With fewer rounds, no interval of the median covers 95%; with more, the answer does not change.
FEWEST, MOST = 6, 24
# Two rounds decide if both are this factor away from WORTHWHILE, on one side: rounds differ by a tenth (see above).
# The warm-up is not one of them: first calls take up to twice as long, in either format.
BEYOND_DOUBT = 1.5
# Seconds of wall time after which no further round starts.
LONGEST = 8.0
COVERAGE = 0.95
# Why token vectors alone are computed in float32: their sum has no matrix product to speed up.
NO_LAYERS = "no layers"


@dataclass(frozen=True)
class Speedup:
    """The speedup of bfloat16 over float32, measured in rounds.

    Attributes:
        ratios: float32 seconds divided by bfloat16 seconds, for each round.
    """

    ratios: Sequence[float]

    @property
    def ratio(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.ratios)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% confidence interval of the median; the full range if there are fewer than FEWEST rounds."""
        ordered, outside = sorted(self.ratios), ranks_outside(len(self.ratios))
        return ordered[outside], ordered[-1 - outside]

    @property
    def certain(self) -> bool:
        """Whether the whole interval is on one side of WORTHWHILE; of few rounds, whether all are far on one side."""
        if len(self.ratios) < FEWEST:
            low, high = WORTHWHILE / BEYOND_DOUBT, WORTHWHILE * BEYOND_DOUBT
            return len(self.ratios) > 1 and (max(self.ratios) <= low or min(self.ratios) >= high)
        low, high = self.interval
        return low >= WORTHWHILE or high < WORTHWHILE

    @property
    def dtype(self) -> str:
        """The format to use: bfloat16 if the median speedup reaches WORTHWHILE, otherwise float32."""
        return "bfloat16" if self.ratio >= WORTHWHILE else "float32"

    def reason(self, what: str) -> str:
        """The measurement as text, with its interval.

        Args:
            what: the verb for the work that was timed, such as "encodes".
        """
        low, high = self.interval
        rounds = counted(len(self.ratios), "round")
        doubt = "" if self.certain else "; not certain"
        return (
            f"measured: bfloat16 {what} {self.ratio:.2f} times as fast as float32 "
            f"({low:.2f} to {high:.2f} in {rounds}{doubt})"
        )


def ranks_outside(rounds: int) -> int:
    """How many values on either side lie outside the 95% interval of the median (a sign test)."""
    outside, tail = 0, 0.5**rounds
    while (outside + 1) * 2 < rounds and tail + math.comb(rounds, outside + 1) * 0.5**rounds <= (1 - COVERAGE) / 2:
        outside += 1
        tail += math.comb(rounds, outside) * 0.5**rounds
    return outside


def choose_dtype(
    asked: str, device: torch.device, trial: Callable[[str], Callable[[], object]], verb: str
) -> tuple[str, str]:
    """The number format to compute in, and the reason: the requested one, the device's default, or the faster one.

    Args:
        asked: one of `commands.shared.DTYPES`.
        trial: returns the work to time in a given number format; called only if the choice is measured.
        verb: a verb for that work, such as "encodes".

    Raises:
        UsageError: see `dtype_candidates`.
    """
    candidates = dtype_candidates(asked, device)
    if len(candidates) == 1:
        return candidates[0], "requested" if asked != "auto" else f"default on {device.type}"
    found = measure(trial("float32"), trial("bfloat16"))
    return found.dtype, found.reason(verb)


def measure(
    float32: Callable[[], object],
    bfloat16: Callable[[], object],
    *,
    cpu_clock: Callable[[], float] = time.thread_time,
    wall_clock: Callable[[], float] = time.monotonic,
) -> Speedup:
    """Time two calls in turn until the answer is certain, for at most MOST rounds and LONGEST seconds.

    Args:
        float32, bfloat16: the same work in each format.
        cpu_clock: CPU seconds of this thread.
        wall_clock: wall time in seconds.
    """
    started = wall_clock()

    def late() -> bool:
        return wall_clock() - started >= LONGEST

    def ratio_of(first: Callable[[], object], second: Callable[[], object]) -> float:
        seconds = {call: _seconds(call, cpu_clock) for call in (first, second)}
        return seconds[float32] / seconds[bfloat16]

    with one_thread():
        warm_up = ratio_of(float32, bfloat16)
        if late():  # far too slow for more rounds
            return Speedup([warm_up])
        found = Speedup([])
        while not (found.certain or len(found.ratios) >= MOST or (found.ratios and late())):
            # Alternate the order, so that neither format always runs on the warmer machine.
            order = (float32, bfloat16) if len(found.ratios) % 2 == 0 else (bfloat16, float32)
            found = Speedup([*found.ratios, ratio_of(*order)])
        return found


def _seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    # A clock may be too coarse for a tiny model.
    return max(clock() - start, 1e-9)
