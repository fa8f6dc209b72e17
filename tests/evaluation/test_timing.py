"""Calls in turn, and percentiles."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.evaluation.timing import alternate, percentiles


def test_calls_are_made_in_turn_back_and_forth_after_one_of_each() -> None:
    calls: list[str] = []
    seconds = alternate({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert [len(times) for times in seconds.values()] == [3, 3]


def test_no_round_is_begun_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def call(name: str, takes: float) -> None:
        nonlocal now
        calls.append(name)
        now += takes

    monkeypatch.setattr("time.perf_counter", lambda: now)
    for ends, rounds in ((0.0, 1), (11.9, 1), (12.0, 2), (19.0, 3), (99.0, 5)):
        calls: list[str] = []
        now = 0.0
        seconds = alternate({"a": lambda: call("a", 1.0), "b": lambda: call("b", 3.0)}, rounds=5, ends=ends)
        assert [len(times) for times in seconds.values()] == [rounds, rounds], "a round has all calls"
        assert len(calls) == 2 * (1 + rounds)


def test_without_a_warm_up_every_call_is_timed() -> None:
    calls: list[str] = []
    alternate({"a": lambda: calls.append("a")}, rounds=2, warm_up=False)
    assert calls == ["a", "a"]


def test_percentiles_in_milliseconds() -> None:
    seconds = np.arange(1, 101) / 1000
    assert percentiles(seconds.tolist()) == pytest.approx({"p50": 50.5, "p95": 95.05, "p99": 99.01})
