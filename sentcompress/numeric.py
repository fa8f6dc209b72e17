"""Comparisons that are false for NaN and infinity, and the formatting of numbers in tables and pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

Value = TypeVar("Value")
NOT_DEFINED = "not defined"
NOTHING = ""
# A ratio that is nearer to 1 says nothing: sizes and times of two equal models differ as much.
SMALLEST_GAIN = 1.05


def at_least(value: float, least: float) -> bool:
    """Whether the value is finite and at least `least`."""
    return least <= value < math.inf  # math.isfinite cannot take a whole number of more than 308 digits


def at_most(value: float, most: float) -> bool:
    """Whether the value is finite and at most `most`."""
    return -math.inf < value <= most


def measured(value: Value | None) -> Value | str:
    """The value of a measurement for display: NOT_DEFINED for None and for an empty text."""
    return NOT_DEFINED if value is None or value == "" else value


def figure(value: float | None, form: str) -> str:
    """A number in the format `form`, such as `.2f`; NOT_DEFINED for None, NaN and infinity.

    >>> figure(1.2345, ".2f"), figure(float("nan"), ".2f")
    ('1.23', 'not defined')
    """
    return NOT_DEFINED if value is None or not math.isfinite(value) else format(value, form)


def number(value: float | int | None, digits: int = 2) -> str:
    """A number with this many decimals and thousands separators; whole numbers without decimals, None as empty text."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else figure(value, f",.{digits}f")


def between(interval: Sequence[float] | None, digits: int = 2, signed: bool = False) -> str:
    """An interval: `79.81 to 84.05`."""
    if interval is None:
        return NOTHING
    if not all(map(math.isfinite, interval)):
        return NOT_DEFINED
    low, high = (f"{value:{'+' if signed else ''}.{digits}f}" for value in interval)
    return f"{low} to {high}"


def rate(value: float) -> str:
    """Things per second: `20,938` or `0.417`."""
    return _three_digits(value)


def signed(value: float | None, digits: int = 2) -> str:
    """A difference: `-0.81`."""
    return NOTHING if value is None else figure(value, f"+.{digits}f")


def share(value: float | None) -> str:
    """A percentage: `98.8%`."""
    return NOTHING if value is None else _with_unit(figure(value, ".1f"), "%")


def whole_share(value: float) -> str:
    """A percentage without decimals: `99%`; `100%` only if it is no less."""
    return _with_unit(figure(min(value, 99.0) if value < 100 else value, ".0f"), "%")


def times(value: float | None) -> str:
    """A ratio: `2.5x`."""
    return NOTHING if value is None else _with_unit(_three_digits(value), "x")


def gain(ratio: float | None, better: str, worse: str) -> str:
    """A ratio in words: `2.5x smaller`, `1.2x larger`; nothing for one that is within 5% of 1."""
    if ratio is None:
        return NOTHING
    if not (math.isfinite(ratio) and ratio > 0):
        return NOT_DEFINED
    if 1 / SMALLEST_GAIN < ratio < SMALLEST_GAIN:
        return NOTHING
    return f"{ratio:.2f}x {better}" if ratio > 1 else f"{1 / ratio:.2f}x {worse}"


def amount(count: float | None) -> str:
    """Parameters: `22.7M`."""
    return NOTHING if count is None else _scaled(count, ((1e9, "B"), (1e6, "M"), (1e3, "k")), "")


def size(count: float | None) -> str:
    """Bytes, in powers of ten: `69.7 MB`."""
    return NOTHING if count is None else _scaled(count, ((1e9, " GB"), (1e6, " MB"), (1e3, " kB")), " B")


def _with_unit(shown: str, unit: str) -> str:
    return shown if shown == NOT_DEFINED else f"{shown}{unit}"


def _three_digits(value: float) -> str:
    """At least three digits, and never a power of ten."""
    return figure(value, ",.0f" if abs(value) >= 100 else ".3g")


def _scaled(count: float, units: Sequence[tuple[float, str]], plain: str) -> str:
    if not math.isfinite(count):
        return NOT_DEFINED
    for unit, name in units:
        if count >= unit:
            return f"{_three_digits(count / unit)}{name}"
    return f"{count:g}{plain}"
