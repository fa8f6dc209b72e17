"""The shard that a process makes: `3/16`, or from the variables of a job array."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sentcompress.errors import UsageError

AUTO = "auto"
VARIABLE = "SENTCOMPRESS_SHARD"
SLURM = "SLURM_ARRAY_TASK_"
MOST_SHARDS = 10_000
_FORM = re.compile(r"([0-9]{1,9})/([0-9]{1,9})", re.ASCII)
_ELSE = f"submit an array job (sbatch -a 1-16), or set {VARIABLE}=3/16"


@dataclass(frozen=True)
class Shard:
    """Shard `number` of `count`, from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.number}-of-{self.count}"

    def of(self, pieces: int) -> range:
        """The pieces of this shard, consecutive ones; the shards together have each piece once, in order."""
        return range(pieces * (self.number - 1) // self.count, pieces * self.number // self.count)

    def of_sizes(self, sizes: Sequence[int]) -> range:
        """The pieces of this shard, as in `of`, so that all shards have nearly the same sum of sizes.

        Args:
            sizes: the size of each piece, such as its characters; every piece counts as at least 1.
        """
        ends = list(accumulate(max(1, size) for size in sizes))
        # A piece belongs to the shard that its middle is in.
        middles = [start + end for start, end in zip([0, *ends], ends, strict=False)]
        total = ends[-1] if ends else 0
        edges = (2 * total * edge / self.count for edge in (self.number - 1, self.number))
        first, stop = (bisect_left(middles, edge) for edge in edges)
        return range(first, stop)


def find_shard(text: str | None, environment: Mapping[str, str] = os.environ) -> Shard | None:
    """The shard that an option names; None without the option.

    Args:
        text: `I/N`, or `auto`: from SENTCOMPRESS_SHARD, or from the variables that Slurm sets in an array job.

    Raises:
        UsageError: if it cannot be told.
    """
    if text is None:
        return None
    if text != AUTO:
        return _parsed(text, "`shard`", "I/N, such as 3/16, or auto")
    if VARIABLE in environment:
        return _parsed(environment[VARIABLE], f"`shard` auto: {VARIABLE}", "I/N, such as 3/16")
    return _of_array(environment)


def _parsed(text: str, what: str, form: str) -> Shard:
    found = _FORM.fullmatch(text)
    if not found:
        raise UsageError(f"{what} must be {form}, not {text[:40]!r}")
    shard = Shard(int(found[1]), int(found[2]))
    if not 1 <= shard.count <= MOST_SHARDS:
        raise UsageError(f"{what} {text}: the number of shards must be from 1 to {MOST_SHARDS}")
    if not 1 <= shard.number <= shard.count:
        raise UsageError(f"{what} {text}: the number of the shard must be from 1 to {shard.count}")
    return shard


def _of_array(environment: Mapping[str, str]) -> Shard:
    if missing := [SLURM + name for name in ("ID", "MIN", "COUNT") if SLURM + name not in environment]:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(f"`shard` auto: {' and '.join(missing)} {verb} not set; {_ELSE}")
    # Slurm sets all five; whatever else starts the job may leave out the last two.
    said = {name: environment.get(SLURM + name) for name in ("ID", "MIN", "COUNT", "MAX", "STEP")}
    for name, text in said.items():
        if text is not None and not re.fullmatch("[0-9]{1,9}", text):
            raise UsageError(f"`shard` auto: {SLURM}{name} must be a whole number, not {text[:40]!r}; {_ELSE}")
    number, least, count = (int(said[name] or 0) for name in ("ID", "MIN", "COUNT"))
    step = int(said["STEP"] or 1)
    most = int(said["MAX"] or least + (count - 1) * step)
    if step < 1 or most - least != (count - 1) * step or number < least or (number - least) % step:
        raise UsageError(
            f"`shard` auto: the task ids of the array job are not evenly spaced, so they do not tell the shard; "
            f"run single shards with {VARIABLE}=3/16"
        )
    return _parsed(f"{(number - least) // step + 1}/{count}", f"`shard` auto: {SLURM}ID {number} means shard", "I/N")
