"""A campaign of many random trials, run by workers and counted in a table.

PYTHONPATH=tests python -m faults.campaign --runs 10000 --seed 1 --jobs 2
PYTHONPATH=tests python -m faults.campaign --trial '{"stage": ...}'      one of them again
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.aimed import AIMED, aimed
from faults.pool import Pool, started
from faults.stages import all_stages
from faults.trials import Trial, choose


@dataclass
class Result:
    """The result of a campaign."""

    seed: int
    runs: int = 0
    processes: int = 0
    stuck: int = 0
    seconds: float = 0.0
    preparing: float = 0.0
    hits: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    places: set[tuple[str, int]] = field(default_factory=set)
    operations: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[Trial, list[str]]] = field(default_factory=list)
    planted: dict[str, dict[str, int]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as a JSON document."""
        by_stage: dict[str, dict[str, dict[str, int]]] = {}
        for (stage, kind, outcome), count in sorted(self.hits.items()):
            by_stage.setdefault(stage, {}).setdefault(kind, {})[outcome] = count
        return {
            "seed": self.seed,
            "runs": self.runs,
            "commands": self.processes,
            "faults": sum(self.hits.values()),
            "stuck": self.stuck,
            "differing": len(self.failures),
            "seconds": round(self.seconds, 1),
            "seconds_of_preparation": round(self.preparing, 1),
            "operations": self.operations,
            "operations_hit": len(self.places),
            "planted_bugs": self.planted,
            "faults_by_stage_kind_and_outcome": by_stage,
        }

    def table(self) -> str:
        """Faults by stage and outcome, then by kind of operation and outcome, then the totals."""
        outcomes = sorted({outcome for _, _, outcome in self.hits})
        lines = []
        for place, head in ((0, "stage"), (1, "operation")):
            rows = sorted({key[place] for key in self.hits})
            lines.append(f"{head:22}" + "".join(f"{outcome:>14}" for outcome in outcomes))
            for row in rows:
                counts = [
                    sum(count for key, count in self.hits.items() if key[place] == row and key[2] == outcome)
                    for outcome in outcomes
                ]
                lines.append(f"{row:22}" + "".join(f"{count:14,}" for count in counts))
            lines.append("")
        for bug, counted in self.planted.items():
            lines.append(
                f"planted bug, {bug}: caught by {counted['caught']} of {counted['runs']} runs aimed at it; "
                f"without it {counted['caught_without_it']} of the same runs fail"
            )
        return "\n".join([*lines, self.totals()])

    def totals(self) -> str:
        """A summary in one line."""
        prepared = f" (and {self.preparing:.0f} s of preparation)" if self.preparing else ""
        return (
            f"seed {self.seed}: {self.runs:,} runs with {sum(self.hits.values()):,} faults at {len(self.places):,} of "
            f"{sum(self.operations.values()):,} operations in {self.seconds:.0f} s{prepared}: "
            f"{self.stuck} stuck, {len(self.failures)} differing"
        )


def run_campaign(
    pool: Pool,
    trials: Sequence[Trial],
    seed: int,
    minutes: float = 1e6,
    *,
    failures: float = math.inf,
    tell: bool = False,
) -> Result:
    """Run the trials, for at most `minutes`; after `failures` of them have failed, no other is begun."""
    result = Result(seed, operations={name: len(kinds) for name, kinds in pool.kinds.items()})
    begun = time.monotonic()
    needed = itertools.takewhile(lambda _: len(result.failures) < failures, trials)
    for trial, answer in pool.run(needed, begun + 60 * minutes):
        result.runs += 1
        result.stuck += answer["stuck"]
        result.processes += answer["commands"]
        result.hits.update((trial.stage, kind, label) for kind, label in answer["hits"])
        if trial.first.at < len(pool.kinds[trial.stage]):
            result.places.add((trial.stage, trial.first.at))
        if answer["wrong"]:
            result.failures.append((trial, answer["wrong"]))
            if tell:
                print(f"{trial.stage}: {'; '.join(answer['wrong'][:6])}\n  --trial '{trial.as_json()}'", flush=True)
        if tell and result.runs % 500 == 0:
            print(f"{result.runs:,} runs, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    result.seconds = time.monotonic() - begun
    return result


def catch_planted(pool: Pool) -> dict[str, dict[str, int]]:
    """How often each planted bug is caught by the trials aimed at it, and what the same trials find without it."""
    counted = {}
    for bug in AIMED:
        found, without = (run_campaign(pool, aimed(bug, pool.kinds, plant=plant), seed=0) for plant in (True, False))
        counted[bug] = {
            "runs": found.runs,
            "caught": len(found.failures),
            "caught_without_it": len(without.failures),
        }
    return counted


def main() -> int:
    names = [stage.name for stage in all_stages()]
    quick = [stage.name for stage in all_stages() if not stage.slow]
    parser = argparse.ArgumentParser(description="Disturb every stage, and see that nothing is lost.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--stages", default=",".join(quick), help=f"some of: {', '.join(names)}")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e6, help="start no run after this many minutes")
    parser.add_argument("--planted", action="store_true", help="also check that the planted bugs are caught")
    parser.add_argument("--trial", help="run one trial, in the form that a failed run prints")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    asked = parser.parse_args()
    one = Trial.from_json(asked.trial) if asked.trial else None
    begun = time.monotonic()
    print(f"seed {asked.seed}", flush=True)
    with started(1 if one else asked.jobs, [one.stage] if one else asked.stages.split(",")) as pool:
        preparing = time.monotonic() - begun
        trials = [one] if one else choose(pool.kinds, asked.runs, asked.seed)
        result = run_campaign(pool, trials, asked.seed, asked.minutes, tell=True)
        result.preparing = preparing
        result.planted = catch_planted(pool) if asked.planted else {}
    print(result.table())
    if asked.json:
        asked.json.write_text(json.dumps(result.as_dict(), indent=1) + "\n", encoding="utf-8")
    missed = [bug for bug, counted in result.planted.items() if not counted["caught"] or counted["caught_without_it"]]
    return 1 if result.failures or missed else 0


if __name__ == "__main__":
    sys.exit(main())
