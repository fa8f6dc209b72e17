"""The trials that are to catch each planted bug."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from faults.shim import Fault
from faults.trials import Trial

# For each bug a stage that has it, and what happens at every operation of that stage, and when all is done.
AIMED: dict[str, tuple[str, Sequence[Fault]]] = {
    "no fsync": ("fit-pca", [Fault(outcome="kill-after", torn="names")]),
    "no folder fsync": ("fit-pca", [Fault(outcome="kill-after", torn="least")]),
    "rename first": ("teacher-embed", [Fault(outcome="kill-after", torn="names")]),
    "digest unread": ("eval-sts", [Fault(outcome="kill-after", torn="names")]),
    "marker early": ("teacher-embed", [Fault(outcome="kill-after")]),
}


def aimed(bug: str, kinds: Mapping[str, Sequence[str]], *, plant: bool) -> list[Trial]:
    """The trials of a bug, with it or without; `kinds` are the operations of every stage."""
    stage, faults = AIMED[bug]
    places = range(len(kinds[stage]) + 1)
    planted_bug = bug if plant else ""
    return [Trial(stage, replace(fault, at=at), seed=at, planted=planted_bug) for at in places for fault in faults]
