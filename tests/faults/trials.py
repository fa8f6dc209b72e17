"""A trial: which fault in which stage."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from faults.shim import NO_FAULT, Fault


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
