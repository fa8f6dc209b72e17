"""Many faults: chosen by a seed, carried out by workers, counted in a table.

PYTHONPATH=tests python -m faults.campaign --runs 10000 --seed 1 --jobs 2
PYTHONPATH=tests python -m faults.campaign --trial '{"stage": ...}'      one of them again
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faults.disk import STATES
from faults.shim import NO_FAULT, VARIABLE, Fault, compile_shim, make_control
from faults.stages import all_stages
from faults.trials import Trial

ROOT = Path(__file__).resolve().parents[2]
# A full disk lets a file be renamed and removed.
NEVER_FULL = ("rename", "unlink", "rmdir")
# Share of the trials with a second fault, in the recovery.
TWICE = 0.3
# Set before torch is loaded: one thread, no hub, nothing of the user's.
QUIET = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass
class Result:
    """What a campaign found."""

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

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
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
            "faults_by_stage_kind_and_outcome": by_stage,
        }

    def table(self) -> str:
        """Faults by stage and outcome, then by kind of operation and outcome, then the totals."""
        outcomes = sorted({outcome for _, _, outcome in self.hits})
        lines = []
        for place, head in ((0, "stage"), (1, "operation")):
            rows = sorted({key[place] for key in self.hits})
            lines.append(f"{head:22}" + "".join(f"{outcome:>13}" for outcome in outcomes))
            for row in rows:
                counts = [
                    sum(count for key, count in self.hits.items() if key[place] == row and key[2] == outcome)
                    for outcome in outcomes
                ]
                lines.append(f"{row:22}" + "".join(f"{count:13,}" for count in counts))
            lines.append("")
        return "\n".join([*lines, self.totals()])

    def totals(self) -> str:
        """All in one line."""
        return (
            f"seed {self.seed}: {self.runs:,} runs with {sum(self.hits.values()):,} faults at {len(self.places):,} of "
            f"{sum(self.operations.values()):,} operations in {self.seconds:.0f} s "
            f"(and {self.preparing:.0f} s of preparation): {self.stuck} stuck, {len(self.failures)} differing"
        )


class Pool:
    """Worker processes, each with a folder of its own."""

    def __init__(self, folder: Path, jobs: int, names: Sequence[str]) -> None:
        library = compile_shim(folder)
        self._workers = []
        for number in range(jobs):
            place = folder / f"job-{number}"
            place.mkdir()
            make_control(place / "control")
            python_path = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = (
                os.environ
                | QUIET
                | {
                    "LD_PRELOAD": str(library),
                    VARIABLE: str(place / "control"),
                    "PYTHONPATH": os.pathsep.join(python_path),
                }
            )
            command = [sys.executable, "-m", "faults.worker", str(place / "room"), json.dumps(list(names))]
            with (place / "stderr.txt").open("wb") as stderr:
                worker = subprocess.Popen(
                    command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True
                )
            self._workers.append((worker, place / "stderr.txt"))
        self.kinds: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        for number in range(jobs):
            for name, counted in self._answer(number).items():
                self.kinds.setdefault(name, counted["kinds"])
                self.seconds.setdefault(name, counted["seconds"])

    def run(self, trials: Iterator[Trial], until: float) -> Iterator[tuple[Trial, dict[str, Any]]]:
        """Results as they come; no trial is begun after `until`."""
        found: list[tuple[Trial, dict[str, Any]]] = []
        errors: list[BaseException] = []
        ready = threading.Condition()
        running = len(self._workers)

        def serve(number: int) -> None:
            nonlocal running
            try:
                while time.monotonic() < until:
                    with ready:
                        trial = next(trials, None)
                    if trial is None:
                        break
                    result = self._ask(number, trial)
                    with ready:
                        found.append((trial, result))
                        ready.notify()
            except (RuntimeError, OSError) as error:
                errors.append(error)
            finally:
                with ready:
                    running -= 1
                    ready.notify()

        for number in range(len(self._workers)):
            threading.Thread(target=serve, args=(number,), daemon=True).start()
        while True:
            with ready:
                ready.wait_for(lambda: found or not running)
                taken, found[:] = list(found), []
                ended = not running
            yield from taken
            if errors:
                raise errors[0]
            if ended and not taken:
                return

    def close(self) -> None:
        for worker, _ in self._workers:
            worker.kill()
            worker.wait()

    def _ask(self, number: int, trial: Trial) -> dict[str, Any]:
        stream = self._workers[number][0].stdin
        assert stream is not None
        stream.write(trial.as_json() + "\n")
        stream.flush()
        return self._answer(number, trial.as_json())

    def _answer(self, number: int, about: str = "") -> dict[str, Any]:
        worker, stderr = self._workers[number]
        assert worker.stdout is not None
        line = worker.stdout.readline()
        if not line:
            tail = "".join(stderr.read_text(errors="replace").splitlines(keepends=True)[-12:])
            raise RuntimeError(f"a worker has ended ({worker.wait()}) {about}\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def started(jobs: int, names: Sequence[str]) -> Iterator[Pool]:
    """A pool with folders that are removed afterwards, in memory where there is such a place."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.statvfs(memory).f_bavail * os.statvfs(memory).f_frsize > 2**29
    with ExitStack() as stack:
        place = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="sentcompress-faults-", dir=memory if roomy else None)
        )
        pool = Pool(Path(place), jobs, names)
        stack.callback(pool.close)
        yield pool


def choose(kinds: Mapping[str, Sequence[str]], runs: int, seed: int) -> list[Trial]:
    """Trials over all stages, in random order: every operation of a stage once before any comes again.

    Each time an operation comes with another outcome. Of a stage with four times the operations twice as many are
    among the first trials, so that a small sample has some of every stage.
    """
    rng = random.Random(seed)
    faults = {name: _faults(operations, rng) for name, operations in kinds.items()}
    chosen: list[tuple[float, Trial]] = []
    for name, of_stage in faults.items():
        for turn, fault in enumerate(of_stage):
            second = NO_FAULT
            if rng.random() < TWICE:
                # A recovery has less to do, the later the first fault came.
                left = len(kinds[name]) - fault.at
                second = replace(rng.choice(of_stage), at=rng.randrange(max(left, 0) + 10))
            place = (turn + rng.random()) / math.sqrt(len(kinds[name]))
            chosen.append((place, Trial(name, fault, second, rng.getrandbits(32))))
    chosen.sort(key=lambda one: one[0])
    trials = [trial for _, trial in chosen]
    while len(trials) < runs:
        trials += [replace(trial, seed=rng.getrandbits(32)) for trial in trials]
    return trials[:runs]


def _faults(kinds: Sequence[str], rng: random.Random) -> list[Fault]:
    """All faults of a stage: one at each operation, then another one at each, and so on."""
    by_operation = [_outcomes(at, kind, rng) for at, kind in enumerate(kinds)]
    # The power is cut when all is done: what was reported must be there.
    by_operation.append([Fault(len(kinds), "kill-before", torn=state) for state in STATES])
    rounds = []
    for turn in range(max(map(len, by_operation))):
        together = [faults[turn] for faults in by_operation if turn < len(faults)]
        rng.shuffle(together)
        rounds += together
    return rounds


def _outcomes(at: int, kind: str, rng: random.Random) -> list[Fault]:
    found = [Fault(at, "kill-before"), Fault(at, "kill-after")]
    for error in ("ENOSPC", "EIO"):
        if error == "EIO" or kind not in NEVER_FULL:
            half = kind == "write" and rng.random() < 0.5
            found += [Fault(at, "fail-once", error, half), Fault(at, "fail-always", error, half)]
    found += [Fault(at, rng.choice(("kill-before", "kill-after")), torn=state) for state in STATES]
    rng.shuffle(found)
    return found


def run_campaign(pool: Pool, trials: Sequence[Trial], seed: int, minutes: float = 1e6, *, tell: bool = False) -> Result:
    """Carry out the trials, at most for so many minutes."""
    result = Result(seed, operations={name: len(kinds) for name, kinds in pool.kinds.items()})
    begun = time.monotonic()
    for trial, answer in pool.run(iter(trials), begun + 60 * minutes):
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


def main() -> int:
    names = [stage.name for stage in all_stages()]
    quick = [stage.name for stage in all_stages() if not stage.slow]
    parser = argparse.ArgumentParser(description="Disturb every stage, and see that nothing is lost.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--stages", default=",".join(quick), help=f"some of: {', '.join(names)}")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no run after so many minutes")
    parser.add_argument("--trial", help="one trial, as a failed run prints it")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args()
    one = Trial.from_json(asked.trial) if asked.trial else None
    begun = time.monotonic()
    print(f"seed {asked.seed}", flush=True)
    with started(1 if one else asked.jobs, [one.stage] if one else asked.stages.split(",")) as pool:
        preparing = time.monotonic() - begun
        trials = [one] if one else choose(pool.kinds, asked.runs, asked.seed)
        result = run_campaign(pool, trials, asked.seed, asked.minutes, tell=True)
    result.preparing = preparing
    print(result.table())
    if asked.json:
        asked.json.write_text(json.dumps(result.as_dict(), indent=1) + "\n", encoding="utf-8")
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
