"""The harness catches bugs of the kind that it is there for, and finds nothing where there is none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from faults import planted
from faults.campaign import Pool, run_campaign
from faults.disk import STATES
from faults.shim import Fault
from faults.trials import Trial

# For each bug a stage that has it, and what happens at every operation of that stage.
TORN = [Fault(outcome="kill-after", torn=state) for state in STATES]
AIMED: dict[str, tuple[str, Sequence[Fault]]] = {
    "no fsync": ("fit-pca", TORN),
    "no folder fsync": ("fit-pca", TORN),
    "rename first": ("teacher-embed", TORN),
    "digest unread": ("eval-sts", TORN),
    "marker early": ("teacher-embed", [Fault(outcome="kill-before"), Fault(outcome="kill-after")]),
}


def aimed(bug: str, pool: Pool, *, plant: bool) -> list[Trial]:
    """The faults at every operation, and when all is done."""
    stage, faults = AIMED[bug]
    places = range(len(pool.kinds[stage]) + 1)
    return [
        Trial(stage, Fault(at, fault.outcome, torn=fault.torn), seed=at, planted=bug if plant else "")
        for at in places
        for fault in faults
    ][:: max(1, len(faults) // 2)]


@pytest.mark.parametrize("bug", AIMED)
def test_a_planted_bug_is_caught(bug: str, pool: Pool) -> None:
    result = run_campaign(pool, aimed(bug, pool, plant=True), seed=0)
    assert len(result.failures) >= 3
    assert result.stuck == 0


@pytest.mark.parametrize("bug", AIMED)
def test_the_same_trials_find_nothing_without_it(bug: str, pool: Pool) -> None:
    result = run_campaign(pool, aimed(bug, pool, plant=False), seed=0)
    assert result.failures == []


def test_there_is_no_other_bug() -> None:
    assert set(AIMED) == set(planted.BUGS)
