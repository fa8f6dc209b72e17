"""Sizes, times and numbers as people write them: 10MB, 128, 1.5 GiB; 30m, 2h, 90s; 1 pair, 2 pairs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sentcompress.numeric import size

BYTES: Mapping[str, int] = {
    "": 1,
    "b": 1,
    **{f"{letter}{unit}": 1000**power for power, letter in enumerate("kmg", 1) for unit in ("b", "")},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmg", 1)},
}
SECONDS: Mapping[str, float] = {"s": 1, "m": 60, "min": 60, "h": 3600, "": 60}
# A number of more digits is no amount of anything, and can be infinite as a float.
_QUANTITY = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*")


def read_bytes(text: str) -> int:
    """A number of bytes: `10MB` is 10,000,000, `10MiB` 10,485,760, `128` 128.

    Raises:
        ValueError: if the text is no size; the message is meant for the user.
    """
    number, unit = _parts(text, BYTES, "a size, such as 10MB")
    return _whole(number * BYTES[unit], text)


def read_seconds(text: str) -> float:
    """A time in seconds: `30m`, `2h`, `90s`; a bare number counts minutes.

    Raises:
        ValueError: if the text is no time; the message is meant for the user.
    """
    number, unit = _parts(text, SECONDS, "a time, such as 30m or 2h")
    if not number:
        raise ValueError("must be above zero")
    return number * SECONDS[unit]


def _parts(text: str, units: Mapping[str, float], what: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    unit = match[2].lower() if match else ""
    if match is None or unit not in units:
        raise ValueError(f"must be {what}, not {text!r}")
    return float(match[1]), unit


def _whole(number: float, text: str) -> int:
    if number < 1:
        raise ValueError(f"must be at least one byte, not {text!r}")
    return int(number)


def told_bytes(count: int) -> str:
    """A number of bytes in words: 9.5 MB."""
    return size(count) if count >= 1000 else counted(count, "byte")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """A number of things for a message.

    >>> counted(1, "column"), counted(2000, "query", "queries")
    ('1 column', '2,000 queries')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def told_time(seconds: float) -> str:
    """A time in words: 1 h 5 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
