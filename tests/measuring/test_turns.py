"""Turns within a limit of time: as much as fits, and the same for all models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from sentcompress.measuring.contender import Contender
from sentcompress.measuring.turns import Extent, take_turns

TEXTS = [f"text {number}" for number in range(1000)]


class Clock:
    """Time that passes only where an engine encodes."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Engine:
    """Takes so many seconds for a text, and from a moment on `busy` times as many."""

    def __init__(self, clock: Clock, seconds: float, busy: tuple[float, float] = (float("inf"), 1.0)) -> None:
        self.batch_tokens = 512
        self.encoded: Counter[str] = Counter()
        self._clock, self._seconds, self._busy = clock, seconds, busy

    def encode(self, texts: Sequence[str]) -> None:
        since, times = self._busy
        self.encoded.update(texts)
        self._clock.now += len(texts) * self._seconds * (times if self._clock.now >= since else 1.0)


class Ignored:
    def advance(self, amount: int = 1) -> None:
        pass


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock.perf_counter)
    return clock


def timed(engines: Sequence[Engine], seconds: float | None) -> Extent:
    some: list[Any] = list(engines)
    contenders = [Contender(str(place), "float32", engine, engine, 1) for place, engine in enumerate(some)]
    task: Any = Ignored()
    extent = take_turns(contenders, TEXTS, TEXTS[:100], 3, task, seconds)
    for one in contenders:
        assert len(one.whole) == extent.rounds
        assert [len(turn) for turn in one.single] == [extent.single] * extent.single_rounds
    assert all(engine.encoded == engines[0].encoded for engine in engines), "all encode the same texts equally often"
    return extent


def test_without_a_limit_everything_is_timed(clock: Clock) -> None:
    assert timed([Engine(clock, 0.01), Engine(clock, 0.02)], None) == Extent(1000, 3, 100, 3)


def test_where_time_is_ample_everything_is_timed(clock: Clock) -> None:
    assert timed([Engine(clock, 1e-3), Engine(clock, 2e-3)], 60) == Extent(1000, 3, 100, 3)


@pytest.mark.parametrize("slow", [0.01, 0.02, 0.05])
def test_fewer_texts_are_timed_where_it_is_not(clock: Clock, slow: float) -> None:
    extent = timed([Engine(clock, slow / 4), Engine(clock, slow)], 60)
    assert extent.rounds == extent.single_rounds == 3
    assert 32 <= extent.batched < 1000
    assert 30 < clock.now < 66


def test_where_the_machine_gets_busier_rounds_are_left_out(clock: Clock) -> None:
    extent = timed([Engine(clock, 0.005), Engine(clock, 0.02, busy=(20.0, 4.0))], 60)
    assert extent.rounds < 3
    # What has begun is finished: the round that shows how slow the machine has become.
    assert clock.now < 3 * 60


def test_the_least_is_timed_however_slow_the_models_are(clock: Clock) -> None:
    assert timed([Engine(clock, 1.0), Engine(clock, 3.0)], 1) == Extent(32, 1, 8, 1)
