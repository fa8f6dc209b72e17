"""Trials: which fault in which stage, and how they are selected."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from faults.disk import STATES
from faults.shim import NO_FAULT, Fault

# A full disk lets a file be renamed and removed.
NEVER_FULL = ("rename", "unlink", "rmdir")
# Share of the trials with a second fault, in the recovery.
TWICE = 0.3


@dataclass(frozen=True)
class Trial:
    """A stage, a fault in it, a second fault in the recovery, and the seed of what is left to chance.

    `planted`: a bug of planted.BUGS that the commands of this trial have.
    """

    stage: str
    first: Fault
    second: Fault = NO_FAULT
    seed: int = 0
    planted: str = ""

    def as_json(self) -> str:
        """One line, which `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Trial:
        known = json.loads(text)
        faults = {name: Fault(**known.pop(name)) for name in ("first", "second") if name in known}
        return cls(**known, **faults)


def choose(kinds: Mapping[str, Sequence[str]], runs: int, seed: int) -> list[Trial]:
    """Trials over all stages: every operation of a stage once before any comes again.

    Each time an operation comes with another outcome. One trial of every stage comes first; of a stage with four times
    the operations twice as many are among those that follow.
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
            place = (turn + rng.random()) / math.sqrt(len(kinds[name])) if turn else 0.0
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
