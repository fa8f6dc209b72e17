"""Checks that NaN and infinity do not pass, and how numbers are shown that there are none of."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from sentcompress.numeric import (
    amount,
    at_least,
    at_most,
    between,
    figure,
    gain,
    measured,
    number,
    rate,
    share,
    signed,
    size,
    times,
    whole_share,
)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_passes_no_check(value: float) -> None:
    assert not at_least(value, -1.0)
    assert not at_most(value, 1.0)
    assert figure(value, ".2f") == "not defined"


def test_numbers_are_compared_and_shown() -> None:
    assert at_least(1.0, 1.0)
    assert not at_least(0.9, 1.0)
    assert at_most(1.0, 1.0)
    assert not at_most(1.1, 1.0)
    assert at_least(10**400, 1.0)
    assert not at_most(10**400, 1.0)
    assert figure(1.005, "+.1f") == "+1.0"
    assert figure(None, ".2f") == "not defined"


def test_what_was_measured_without_a_value_is_not_left_blank() -> None:
    assert measured(None) == measured("") == "not defined"
    assert measured(0.0) == 0.0
    assert measured("1.5") == "1.5"


FORMATS: list[Callable[[float | None], str]] = [number, signed, share, times, amount, size]


@pytest.mark.parametrize("form", FORMATS)
def test_missing_values_are_empty_and_nan_is_not_defined(
    form: Callable[[float | None], str],
) -> None:
    assert form(None) == ""
    assert [form(value) for value in (math.nan, math.inf, -math.inf)] == ["not defined"] * 3


def test_almost_all_is_not_all() -> None:
    assert [whole_share(value) for value in (0.0, 98.4, 98.6, 99.6, 100.0)] == ["0%", "98%", "99%", "99%", "100%"]
    assert whole_share(math.nan) == "not defined"


def test_an_interval_has_two_ends() -> None:
    assert between([1.0, 2.345]) == "1.00 to 2.35"
    assert between([-1.0, 2.0], 1, signed=True) == "-1.0 to +2.0"
    assert between(None) == ""
    assert between([math.nan, 2.0]) == "not defined"


def test_a_ratio_near_one_is_no_gain() -> None:
    assert [gain(ratio, "smaller", "larger") for ratio in (3.0, 0.5, 1.05, 1 / 1.05)] == [
        "3.00x smaller",
        "2.00x larger",
        "1.05x smaller",
        "1.05x larger",
    ]
    assert [gain(ratio, "smaller", "larger") for ratio in (1.03, 0.97, 1.0, None)] == [""] * 4
    assert [gain(ratio, "smaller", "larger") for ratio in (0.0, math.nan, math.inf)] == ["not defined"] * 3


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (size(1536), "1.54 kB"),
        (size(96), "96 B"),
        (size(90_868_376), "90.9 MB"),
        (size(4_505_600_000_000), "4,506 GB"),
        (amount(22_565_376), "22.6M"),
        (between([-1.234, 0.5], signed=True), "-1.23 to +0.50"),
        (between(None), ""),
        (share(98.76), "98.8%"),
        (size(None), ""),
        (size(999_900_000_000_000), "999,900 GB"),
        (size(999_960_000), "1,000 MB"),
        (times(1234.0), "1,234x"),
        (times(12.84), "12.8x"),
        (rate(20_938.4), "20,938"),
        (rate(435.88), "436"),
        (rate(0.4172), "0.417"),
    ],
)
def test_numbers_as_they_are_written(written: str, expected: str) -> None:
    assert written == expected
