"""The harness catches bugs of the kind that it is there for, and finds nothing where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from faults import planted
from faults.campaign import Pool, run_campaign
from faults.shim import Fault
from faults.trials import Trial

# For each bug a stage that has it, and what happens at every operation of that stage, and when all is done.
AIMED: dict[str, tuple[str, Sequence[Fault]]] = {
    "no fsync": ("fit-pca", [Fault(outcome="kill-after", torn="names")]),
    "no folder fsync": ("fit-pca", [Fault(outcome="kill-after", torn="least")]),
    "rename first": ("teacher-embed", [Fault(outcome=kill, torn="names") for kill in ("kill-before", "kill-after")]),
    "digest unread": ("eval-sts", [Fault(outcome="kill-after", torn="names")]),
    "marker early": ("teacher-embed", [Fault(outcome="kill-after")]),
}


def aimed(bug: str, pool: Pool, *, plant: bool) -> list[Trial]:
    """The trials of a bug."""
    stage, faults = AIMED[bug]
    places = range(len(pool.kinds[stage]) + 1)
    planted_bug = bug if plant else ""
    return [Trial(stage, replace(fault, at=at), seed=at, planted=planted_bug) for at in places for fault in faults]


@pytest.mark.parametrize("bug", AIMED)
def test_a_planted_bug_is_caught(bug: str, pool: Pool) -> None:
    result = run_campaign(pool, aimed(bug, pool, plant=True), seed=0)
    assert len(result.failures) >= 2
    assert result.stuck == 0


@pytest.mark.parametrize("bug", AIMED)
def test_the_same_trials_find_nothing_without_it(bug: str, pool: Pool) -> None:
    result = run_campaign(pool, aimed(bug, pool, plant=False), seed=0)
    assert result.failures == []


def test_there_is_no_other_bug() -> None:
    assert set(AIMED) == set(planted.BUGS)
