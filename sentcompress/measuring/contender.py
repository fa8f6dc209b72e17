"""One model in one runtime, and its measurements."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sentcompress.evaluation.metrics import (
    DISK_BYTES,
    LATENCY_P50,
    LATENCY_P95,
    LATENCY_P99,
    PASS_SECONDS,
    SPEED,
    SPEED_SINGLE,
)
from sentcompress.evaluation.timing import alternate, percentiles
from sentcompress.measuring.runtimes import Job, LoadedRuntime
from sentcompress.progress import Task

# Batch sizes to choose from, in tokens with padding.
BATCH_TOKENS = (512, 2048, 8192)


@dataclass
class Contender:
    """A loaded model and the seconds of its calls.

    Attributes:
        role: `model` or `compare`.
        runtime: one of RUNTIMES.
        disk_bytes: size of its weights or graph on disk.
        whole: seconds of a pass over all sentences, in batches, in each round.
        single: for each timed pass, the seconds of every sentence encoded by itself.
    """

    role: str
    runtime: str
    job: Job
    engine: LoadedRuntime
    disk_bytes: int
    whole: list[float] = field(default_factory=list)
    single: list[list[float]] = field(default_factory=list)

    @property
    def key(self) -> str:
        return f"{self.runtime} {self.role}"

    def pick_batch(self, texts: Sequence[str], task: Task, rounds: int, seconds: float = math.inf) -> float:
        """Set the batch size that is fastest in a short trial on the texts; returns its seconds per text.

        The shortest time of several rounds counts, because noise would decide with one round and few texts.

        Args:
            rounds: maximum number of rounds.
            seconds: time limit; after the first round, none begins that would end later.
        """
        runs = {str(tokens): partial(self._encode, texts, tokens, task) for tokens in BATCH_TOKENS}
        tried = alternate(runs, rounds, time.perf_counter() + seconds)
        self.engine.batch_tokens = min(BATCH_TOKENS, key=lambda tokens: min(tried[str(tokens)]))
        return min(tried[str(self.engine.batch_tokens)]) / len(texts)

    def _encode(self, texts: Sequence[str], tokens: int, task: Task) -> None:
        self.engine.batch_tokens = tokens
        self.engine.encode(texts)
        task.advance(len(texts))

    def encode_all(self, texts: Sequence[str], task: Task, passes: int = 1) -> None:
        """Encode the texts `passes` times, in batches of the size that was picked."""
        for _ in range(passes):
            self.engine.encode(texts)
            task.advance(len(texts))

    def warm_up(self, texts: Sequence[str]) -> None:
        """Encode the texts one at a time, untimed."""
        for text in texts:
            self.engine.encode([text])

    def encode_singly(self, texts: Sequence[str], task: Task) -> None:
        """Encode the texts one at a time and record the seconds of each."""
        seconds = []
        for text in texts:
            start = time.perf_counter()
            self.engine.encode([text])
            seconds.append(time.perf_counter() - start)
        self.single.append(seconds)
        task.advance(len(texts))

    def figures(self, batched: int) -> dict[str, Any]:
        """The results of the timed passes; `batched` is the number of texts of a batched pass."""
        each = [seconds for turn in self.single for seconds in turn]
        latency = percentiles(each)
        return {
            SPEED: round(batched / statistics.median(self.whole), 1),
            "best_batch_tokens": self.engine.batch_tokens,
            SPEED_SINGLE: round(1 / statistics.mean(each), 1),
            LATENCY_P50: round(latency["p50"], 3),
            LATENCY_P95: round(latency["p95"], 3),
            LATENCY_P99: round(latency["p99"], 3),
            DISK_BYTES: self.disk_bytes,
            "device": self.job.device,
        }

    def seconds_of_a_pass(self) -> dict[str, Any]:
        """The seconds of each pass of single sentences, and their mean."""
        passes = [sum(seconds) for seconds in self.single]
        return {PASS_SECONDS: round(statistics.mean(passes), 3), "passes": [round(one, 3) for one in passes]}
