"""Parsing of scores and grades in data files."""

from __future__ import annotations

import math

# All sensible scores and grades are within these bounds; squares of other numbers overflow or underflow.
LARGEST_NUMBER = 1e9
_SMALLEST = 1e-9
USABLE = "a number from -1e9 to 1e9"


def parse_number(text: str) -> float | None:
    """The number in a field, with tiny ones as 0; None if it is not USABLE, e.g. NaN or infinity."""
    try:
        # float() would accept 1_000, which is Python syntax and not a score.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    if abs(value) < _SMALLEST:
        return 0.0
    return value if abs(value) <= LARGEST_NUMBER else None
