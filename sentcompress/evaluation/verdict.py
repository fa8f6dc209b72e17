"""A verdict in words: the level that a value reaches, what to expect, and cautions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class Level(NamedTuple):
    """The smallest value of a level, its name, and what to expect of a model that reaches it."""

    least: float
    name: str
    expectation: str


@dataclass(frozen=True)
class Verdict:
    """The name of a level, a summary in words, cautions, and the thresholds of all levels."""

    level: str
    text: str
    cautions: Sequence[str]
    rules_of_thumb: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """The verdict as JSON."""
        return asdict(self)


def verdict(levels: Sequence[Level], value: float, text: str, cautions: Iterable[str]) -> Verdict:
    """The verdict for a value: `text` ends with what to expect at its level. Levels are given best first."""
    reached = next(level for level in levels if value >= level.least)
    thresholds = {level.name: level.least for level in levels}
    return Verdict(reached.name, f"{text} {reached.expectation}.", list(cautions), thresholds)
