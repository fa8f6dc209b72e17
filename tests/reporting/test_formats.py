"""Numbers of a report, and what stands in their place where there are none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from sentcompress.reporting.formats import amount, between, number, share, signed, size, times

FORMATS: list[Callable[[float | None], str]] = [number, signed, share, times, amount, size]


@pytest.mark.parametrize("form", FORMATS)
def test_missing_values_are_empty_and_nan_is_not_defined(
    form: Callable[[float | None], str],
) -> None:
    assert form(None) == ""
    assert [form(value) for value in (math.nan, math.inf, -math.inf)] == ["not defined"] * 3


def test_an_interval_has_two_ends() -> None:
    assert between([1.0, 2.345]) == "1.00 to 2.35"
    assert between([-1.0, 2.0], 1, signed=True) == "-1.0 to +2.0"
    assert between(None) == ""
    assert between([math.nan, 2.0]) == "not defined"
