"""A sample of the campaign: some faults in every stage, none of which leaves a trace; planted bugs are caught.

All tests that need the pool of workers are in this file, so that xdist gives them to one process.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from faults import planted
from faults.aimed import AIMED, aimed
from faults.campaign import run_campaign
from faults.disk import STATES
from faults.pool import Pool, started
from faults.shim import Fault, find_compiler
from faults.stages import PLAIN, all_stages
from faults.trials import Trial, choose

# One of every stage and a few of the longest; `make faults` makes 10,000.
RUNS = 45
# Stages over an older artifact, drawn by the seed: it is replaced by the same code in all of them.
OVER_OLDER = 6
SEED = "SENTCOMPRESS_FAULTS_SEED"


@pytest.fixture(scope="module")
def seed() -> int:
    return int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))


@pytest.fixture(scope="module")
def pool(seed: int) -> Iterator[Pool]:
    """Workers, which first run every stage without faults; skips where the library cannot be compiled or preloaded."""
    if sys.platform != "linux" or find_compiler() is None:
        pytest.skip("the fault harness needs Linux with a C compiler and libc's headers")
    names = [stage.name for stage in PLAIN if not stage.slow]
    others = [stage.name for stage in all_stages() if stage not in PLAIN]
    # With two cores and two processes of xdist, a second worker would only add its preparation.
    jobs = 1 if "PYTEST_XDIST_WORKER" in os.environ and (os.cpu_count() or 1) <= 2 else 2
    with started(jobs, [*names, *random.Random(seed).sample(others, OVER_OLDER)]) as found:
        yield found


def test_no_fault_leaves_a_trace(pool: Pool, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    result = run_campaign(pool, choose(pool.kinds, RUNS, seed), seed)
    with capsys.disabled():
        print(f"\nfaults ({SEED}={seed} for the same again): {result.totals()}")
    assert [f"{found}: --trial '{trial.as_json()}'" for trial, found in result.failures] == []
    assert (result.runs, result.stuck) == (RUNS, 0)
    assert {stage for stage, _, _ in result.hits} == set(pool.kinds)


@pytest.mark.parametrize("bug", AIMED)
def test_a_planted_bug_is_caught_and_nothing_without_it(bug: str, pool: Pool) -> None:
    trials = aimed(bug, pool.kinds, plant=True)
    # In random order, so that those that fail come early.
    result = run_campaign(pool, random.Random(0).sample(trials, len(trials)), seed=0, failures=2)
    assert len(result.failures) >= 2
    assert result.stuck == 0
    same = [replace(trial, planted="") for trial, _ in result.failures]
    assert run_campaign(pool, same, seed=0).failures == []


def test_there_is_no_other_planted_bug() -> None:
    assert set(AIMED) == set(planted.BUGS)


def test_every_operation_comes_with_every_outcome() -> None:
    kinds = {"one": ["mkdir", "create", "write", "fsync", "rename", "fsync-folder"], "two": ["write", "unlink"] * 20}
    total = len(choose(kinds, 1, 0)) and 6 * 10 + 4 - 2 + 20 * (10 + 8) + 4
    trials = choose(kinds, total, seed=7)
    assert len({(trial.stage, trial.first) for trial in trials}) == total
    assert trials == choose(kinds, total, seed=7)
    assert trials != choose(kinds, total, seed=8)
    # each operation once before any comes again
    assert {trial.first.at for trial in trials if trial.stage == "two"} == set(range(41))
    first = [trial.first.at for trial in trials if trial.stage == "two"][:41]
    assert sorted(first) == list(range(41))
    labels = Counter(trial.first.label for trial in trials if trial.stage == "one" and trial.first.at == 2)
    assert labels == {
        "kill-before": 1,
        "kill-after": 1,
        "ENOSPC once": 1,
        "ENOSPC always": 1,
        "EIO once": 1,
        "EIO always": 1,
        "torn": len(STATES),
    }


def test_a_trial_survives_as_text() -> None:
    trial = Trial("fit-pca", Fault(3, "fail-once", "EIO", half=True), Fault(1, "kill-after", torn="least"), seed=9)
    assert Trial.from_json(trial.as_json()) == trial


def test_every_command_that_writes_is_disturbed() -> None:
    from sentcompress.cli.main import COMMANDS

    # What `compress` writes are the results of other commands, and its plan, as every output file is written.
    assert {stage.words[0] for stage in all_stages()} == set(COMMANDS) - {"compress", "status", "methods"}
