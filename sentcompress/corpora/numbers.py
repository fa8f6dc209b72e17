"""Numbers as files write them."""

from __future__ import annotations

import math

# Scores and grades of any scale lie between; the squares of others overflow or vanish.
LARGEST_NUMBER = 1e9
_SMALLEST = 1e-9
USABLE = "a number from -1e9 to 1e9"


def parse_number(text: str) -> float | None:
    """The number that a field holds, tiny ones as 0; None for what is not USABLE, NaN and infinity among it."""
    try:
        # Python's own notation for long numbers is nobody's score.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    if abs(value) < _SMALLEST:
        return 0.0
    return value if abs(value) <= LARGEST_NUMBER else None
