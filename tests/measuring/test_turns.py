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
    assert all(set(engine.encoded) == set(engines[0].encoded) for engine in engines), "all encode the same texts"
    return extent


def test_where_few_texts_are_timed_a_fast_model_encodes_them_several_times(clock: Clock) -> None:
    fast, slow = Engine(clock, 1e-4), Engine(clock, 0.05)
    contenders = [Contender(str(place), "float32", one, one, 1) for place, one in enumerate((fast, slow))]  # type: ignore[arg-type]
    task: Any = Ignored()
    extent = take_turns(contenders, TEXTS, TEXTS[:100], 3, task, 30)
    last = TEXTS[extent.batched - 1]
    assert extent.rounds == 3
    assert fast.encoded[last] * extent.batched * 1e-4 >= 3 * 0.3
    assert slow.encoded[last] == 4, "the warm-up and three rounds"
    for one, seconds in zip(contenders, (1e-4, 0.05), strict=True):
        assert one.whole == pytest.approx([extent.batched * seconds] * 3)


def test_a_busy_moment_does_not_choose_the_batch_size(clock: Clock) -> None:
    class BySize(Engine):
        """Half as fast with larger batches."""

        def encode(self, texts: Sequence[str]) -> None:
            super().encode(texts if self.batch_tokens == 512 else [*texts, *texts])

    engine: Any = BySize(clock, 1e-3)
    contender = Contender("model", "float32", engine, engine, 1)
    task: Any = Ignored()
    assert contender.pick_batch(TEXTS[:100], task, 1) == pytest.approx(1e-3)
    encode, passes = engine.encode, iter(range(100))

    def disturbed(texts: Sequence[str]) -> None:
        encode(texts)
        clock.now += 0.5 if next(passes) == 3 else 0.0  # the first pass after three to warm up

    engine.encode = disturbed
    contender.pick_batch(TEXTS[:100], task, 5, 3.0)
    assert engine.batch_tokens == 512


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
