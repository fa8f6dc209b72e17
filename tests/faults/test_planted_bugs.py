"""The harness catches planted bugs, and finds nothing without them."""

from __future__ import annotations

import pytest

from faults import planted
from faults.aimed import AIMED, aimed
from faults.campaign import run_campaign
from faults.pool import Pool


@pytest.mark.parametrize("bug", AIMED)
def test_a_planted_bug_is_caught(bug: str, pool: Pool) -> None:
    result = run_campaign(pool, aimed(bug, pool.kinds, plant=True), seed=0)
    assert len(result.failures) >= 2
    assert result.stuck == 0


@pytest.mark.parametrize("bug", AIMED)
def test_the_same_trials_find_nothing_without_it(bug: str, pool: Pool) -> None:
    result = run_campaign(pool, aimed(bug, pool.kinds, plant=False), seed=0)
    assert result.failures == []


def test_there_is_no_other_bug() -> None:
    assert set(AIMED) == set(planted.BUGS)
