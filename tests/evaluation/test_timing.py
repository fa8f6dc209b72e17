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


def test_percentiles_in_milliseconds() -> None:
    seconds = np.arange(1, 101) / 1000
    assert percentiles(seconds.tolist()) == pytest.approx({"p50": 50.5, "p95": 95.05, "p99": 99.01})
