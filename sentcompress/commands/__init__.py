"""The declarations of the commands: the options, version and result of each, one torch-free file a command.

A command's file holds its `Params` and its `COMMAND`. What the command does is in `sentcompress.stages`, in the file of
the same name, and how its result is shown in `sentcompress.cli`. Nothing here may import torch, NumPy or any other
large library at module level, because `sentcompress --help` reads every declaration.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import cache

from sentcompress.commands.options import Options
from sentcompress.errors import UsageError, did_you_mean

# The order of `sentcompress --help`.
NAMES = (
    "run",
    "augment",
    "train-teacher",
    "teacher-embed",
    "fit-pca",
    "distill",
    "finetune",
    "whiten",
    "weigh-tokens",
    "average",
    "mine-negatives",
    "eval-sts",
    "eval-retrieval",
    "eval-transfer",
    "eval-fidelity",
    "bench",
    "export",
    "encode",
    "report",
    "status",
    "methods",
)


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        params: its options.
        summary: what it does, for `--help`.
        makes: the kind of artifact that it writes, if it writes one. Such a command can be a stage of a recipe.
        version: increased with every change of results, so that older artifacts become stale.
        needs: kinds of artifacts that the work directory must hold, even if no option names one.
    """

    params: type[Options]
    summary: str
    makes: str | None = None
    version: int = 1
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What to type after `sentcompress`."""
        return self.params.command


@cache
def find_command(name: str) -> Command:
    """Return the command of that name.

    Raises:
        UsageError: if there is none.
    """
    if name not in NAMES:
        raise UsageError(f"no such command: {name}", did_you_mean(name, NAMES))
    module = importlib.import_module(f"sentcompress.commands.{name.replace('-', '_')}")
    return module.COMMAND  # type: ignore[no-any-return]


def all_commands() -> dict[str, Command]:
    """Every command by name, in the order of the help."""
    return {name: find_command(name) for name in NAMES}


def makers() -> dict[str, Command]:
    """The commands that write an artifact, by name."""
    return {name: command for name, command in all_commands().items() if command.makes}


def version_of(name: str) -> int:
    """The version of a command; 1 for a name that is no command of this version of sentcompress."""
    return find_command(name).version if name in NAMES else 1
