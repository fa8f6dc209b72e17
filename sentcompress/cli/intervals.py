"""How tables with intervals show them, and the models they are of."""

from __future__ import annotations

from collections.abc import Sequence

from sentcompress.numeric import measured


def shown(
    interval: Sequence[float] | None, *, digits: int = 2, signed: bool = False, asked: bool = False
) -> str | None:
    """`79.81 to 84.05`; without an interval, "not defined" if it was requested, otherwise None."""
    if interval is None:
        return measured(None) if asked else None
    low, high = (f"{value:{'+' if signed else ''}.{digits}f}" for value in interval)
    return f"{low} to {high}"


def short(label: str) -> str:
    """The head of a model's column: its label without the owner."""
    return label.rstrip("/").rpartition("/")[2]
