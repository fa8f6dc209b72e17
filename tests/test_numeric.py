"""Checks that NaN and infinity do not pass, and how numbers are shown that there are none of."""

from __future__ import annotations

import math

import pytest

from sentcompress.numeric import at_least, at_most, figure, measured


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
    assert figure(1.005, "+.1f") == "+1.0"
    assert figure(None, ".2f") == "not defined"


def test_what_was_measured_without_a_value_is_not_left_blank() -> None:
    assert measured(None) == measured("") == "not defined"
    assert measured(0.0) == 0.0
    assert measured("1.5") == "1.5"
