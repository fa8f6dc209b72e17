"""Timing of calls that are compared with each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np


def alternate(
    runs: Mapping[str, Callable[[], object]], rounds: int, ends: float | None = None, *, warm_up: bool = True
) -> dict[str, list[float]]:
    """Seconds per call, measured alternately, so that a busy moment of the machine affects all calls.

    Args:
        ends: by `time.perf_counter`; if a round like the last one would end later, it is not begun. There is at least
            one round, and every round has all calls.
        warm_up: call each once before the rounds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values() if warm_up else ():
        run()
    for turn in range(rounds):
        last = sum(times[-1] for times in seconds.values()) if turn else 0.0
        if turn and ends is not None and time.perf_counter() + last > ends:
            break
        for name in in_turn(runs, turn):
            start = time.perf_counter()
            runs[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def in_turn(names: Iterable[str], turn: int) -> list[str]:
    """The names, in reverse order every second turn, so that none always runs on a warmer machine."""
    return list(names)[:: 1 if turn % 2 == 0 else -1]


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Latency percentiles in milliseconds: p50, p95, p99."""
    return {f"p{of}": 1000 * float(np.percentile(seconds, of)) for of in (50, 95, 99)}
