"""The recipes that come with the project, one case for each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from sentcompress.recipes.document import Recipe, Stage, read_recipe

FOLDER = Path(__file__).resolve().parents[2] / "recipes"


@dataclass(frozen=True)
class Case:
    """A recipe, or one variant of it; its name is `hpd/minilm-128`."""

    path: Path
    variant: str | None

    @property
    def name(self) -> str:
        return f"{self.path.stem}/{self.variant}" if self.variant else self.path.stem

    @property
    def recipe(self) -> Recipe:
        return _read(self.path).of_variant(self.variant)

    @property
    def chain(self) -> tuple[Any, ...]:
        """What makes its stages different ones to run: commands, methods, options, and settings of a method."""
        return tuple(_shape(stage) for stage in self.recipe.stages)


def _shape(stage: Stage) -> tuple[str, ...]:
    method = str(stage.values.get("method", stage.values.get("objective", "")))
    switches = stage.values.get("set", {})
    return (stage.command, method, *sorted(stage.values), *sorted(switches))


@cache
def _read(path: Path) -> Recipe:
    recipe, faults = read_recipe(path)
    assert not faults, faults
    return recipe


def cases() -> list[Case]:
    paths = sorted(FOLDER.glob("*.toml"))
    return [Case(path, variant) for path in paths for variant in _read(path).variants or (None,)]


def covering(some: Sequence[Case]) -> list[Case]:
    """Cases whose chains have all stages of these, and all pairs of command and method that follow one another."""
    parts = {case: {*case.chain, *pairwise(stage[:2] for stage in case.chain)} for case in some}
    missing, chosen = set().union(*parts.values()), set()
    while missing:
        best = max(some, key=lambda case: len(parts[case] & missing))
        chosen.add(best)
        missing -= parts[best]
    return [case for case in some if case in chosen]


CASES = cases()
CHAINS = covering(CASES)
