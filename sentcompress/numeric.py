"""Comparisons that NaN and infinity never pass, and text for figures that are not defined."""

from __future__ import annotations

import math
from typing import TypeVar

Value = TypeVar("Value")
NOT_DEFINED = "not defined"


def at_least(value: float, least: float) -> bool:
    """Whether the value is finite and at least `least`."""
    return math.isfinite(value) and value >= least


def at_most(value: float, most: float) -> bool:
    """Whether the value is finite and at most `most`."""
    return math.isfinite(value) and value <= most


def measured(value: Value | None) -> Value | str:
    """The value of a measurement for display: NOT_DEFINED for None and for an empty text."""
    return NOT_DEFINED if value is None or value == "" else value


def figure(value: float | None, form: str) -> str:
    """A number in the format `form`, such as `.2f`; NOT_DEFINED for None, NaN and infinity.

    >>> figure(1.2345, ".2f"), figure(float("nan"), ".2f")
    ('1.23', 'not defined')
    """
    return NOT_DEFINED if value is None or not math.isfinite(value) else format(value, form)
