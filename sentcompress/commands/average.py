"""The options of `sentcompress average`."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import Named, TrustRemoteCode
from sentcompress.numeric import at_most
from sentcompress.quantities import counted

# Sums of larger weights overflow; models whose difference is scaled by more than a million are rounding error.
LARGEST_WEIGHT, LARGEST_SHARE = 1e12, 1e6


@dataclass(frozen=True, kw_only=True)
class Params(Named):
    """The models and their weights. Weights may be negative if their sum is positive."""

    command: ClassVar[str] = "average"

    inputs: Annotated[
        tuple[str, ...],
        Opt(
            "Two or more models: students or exports by name, teacher, folders, hub names.",
            positional=True,
            metavar="MODEL...",
            affects="input",
            names=MODEL,
        ),
    ]
    weights: Annotated[
        tuple[float, ...],
        Opt(
            "Weight of each model, such as 2,1; a negative weight extrapolates.",
            commas=True,
            default="equal",
        ),
    ] = ()
    trust_remote_code: TrustRemoteCode = False

    def faults(self) -> list[str]:
        faults = []
        if len(self.inputs) < 2:
            faults.append(f"an average needs at least two models, not {len(self.inputs)}")
        if self.weights and len(self.weights) != len(self.inputs):
            faults.append(f"`weights` has {counted(len(self.weights), 'number')} for {len(self.inputs)} models")
        given = ",".join(f"{weight:g}" for weight in self.weights)
        if not all(self.weights):
            faults.append(f"`weights` must be numbers other than zero, not {given}")
        elif not all(at_most(abs(weight), LARGEST_WEIGHT) for weight in self.weights):
            faults.append(f"`weights` must be at most {LARGEST_WEIGHT:g}, not {given}")
        elif self.weights and math.fsum(self.weights) <= 0:
            faults.append(f"`weights` must add up to more than zero, not {given}")
        elif self.inputs and not all(at_most(abs(share), LARGEST_SHARE) for share in self.shares()):
            faults.append(f"`weights` {given} are more than a million times their sum")
        return faults

    def shares(self) -> list[float]:
        """The weights, scaled to a sum of one."""
        weights = self.weights or (1.0,) * len(self.inputs)
        return [weight / math.fsum(weights) for weight in weights]


COMMAND = Command(
    Params,
    "Average the weights of checkpoints of the same run. For example, average a student before and after finetune.",
    makes="students",
    version=2,  # named prompts are kept
)
