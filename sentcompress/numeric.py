"""Numbers that decide something, or are shown: NaN and infinity pass no check and are never printed as numbers."""

from __future__ import annotations

import math
from typing import TypeVar

Value = TypeVar("Value")
NOT_DEFINED = "not defined"


def at_least(value: float, least: float) -> bool:
    """Whether a finite value is no smaller than `least`. `value < least` would be false of NaN."""
    return math.isfinite(value) and value >= least


def at_most(value: float, most: float) -> bool:
    """Whether a finite value is no larger than `most`."""
    return math.isfinite(value) and value <= most


def measured(value: Value | None) -> Value | str:
    """What is shown of something that was measured: NOT_DEFINED for None, or no text, where there was no value."""
    return NOT_DEFINED if value is None or value == "" else value


def figure(value: float | None, form: str) -> str:
    """A number in the format `form`, as in `.2f`; NOT_DEFINED for None, NaN and infinity.

    >>> figure(1.2345, ".2f"), figure(float("nan"), ".2f")
    ('1.23', 'not defined')
    """
    return NOT_DEFINED if value is None or not math.isfinite(value) else format(value, form)
