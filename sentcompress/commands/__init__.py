"""The declarations of the commands: options, version and result, in one torch-free file per command.

A command's file holds its `Params` and its `COMMAND`. What the command does is in `sentcompress.stages`, in the file of
the same name, and how its result is shown in `sentcompress.cli`. Nothing here may import torch, NumPy or any other
large library at module level, because `sentcompress --help` reads every declaration. Other packages add evaluations
(docs/plugins.md).

Where to look: `options` is for declaring options; `shared` and `training` have the options of several commands.
`parsing` turns user input into a `Params`, and `spelling` turns a `Params` into a command line.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any, Literal

from sentcompress.commands.options import Options, keys_of
from sentcompress.errors import InputError, SentcompressWarning, UsageError, did_you_mean
from sentcompress.plugins import EVALUATIONS, Plugin, plugins
from sentcompress.quantities import read_seconds
from sentcompress.signals import Loading

# The order of `sentcompress --help`.
NAMES = (
    "compress",
    "run",
    "split-documents",
    "augment",
    "train-teacher",
    "teacher-embed",
    "fit-pca",
    "distill",
    "finetune",
    "whiten",
    "weigh-tokens",
    "average",
    "select",
    "mine-negatives",
    "fit-quantizer",
    "eval-sts",
    "eval-retrieval",
    "eval-transfer",
    "eval-fidelity",
    "eval-search",
    "bench",
    "export",
    "encode",
    "search",
    "merge",
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
        needs: kinds of artifacts that it requires; by default, the newest of each is used.
        module: the module of another package that holds it, with its `run` and perhaps `show`.
        shared: the work that the processes of torchrun share: its whole `work`, or the `encoding` of texts for the
            first of them. Otherwise, the first process works alone.
    """

    params: type[Options]
    summary: str
    makes: str | None = None
    version: int = 1
    needs: tuple[str, ...] = ()
    module: str | None = None
    shared: Literal["", "work", "encoding"] = ""

    @property
    def name(self) -> str:
        """The name on the command line, such as `fit-pca`."""
        return self.params.command

    @property
    def slug(self) -> str:
        """The name in Python, such as `fit_pca`."""
        return self.name.replace("-", "_")

    @property
    def doing(self) -> str:
        """The first sentence of its summary as a part of another one: train a student on the cached vectors."""
        first = self.summary.partition(". ")[0].removesuffix(".")
        return first[0].lower() + first[1:]

    def run(self, params: Any, work: Any, reporter: Any) -> Any:
        """Run the command.

        Args:
            params: its options, an instance of `self.params`.
            work: the WorkDirectory.
            reporter: a `progress.Reporter`.

        Returns:
            What the `run` of its stage returns: an Artifact, if the command makes one.

        Raises:
            BusyError: if another process is making the same artifact, for longer than the option `wait`.
        """
        if (wait := getattr(params, "wait", None)) is not None:
            work = work.waiting(read_seconds(wait))
        return self.load().run(params, work, reporter)

    def load(self) -> ModuleType:
        """Import the module of the stage. This can take seconds, during which a signal ends the process at once."""
        with Loading():
            return importlib.import_module(self.module or f"sentcompress.stages.{self.slug}")


@cache
def _added() -> Mapping[str, Plugin]:
    return plugins(EVALUATIONS, taken=NAMES)


def names() -> tuple[str, ...]:
    """The names of all commands, in the order of the help."""
    return (*NAMES, *_added())


@cache
def find_command(name: str) -> Command:
    """Return the command of that name.

    Raises:
        UsageError: if there is none.
        InputError: if it is of another package and cannot be loaded.
    """
    if name in NAMES:
        return importlib.import_module(f"sentcompress.commands.{name.replace('-', '_')}").COMMAND  # type: ignore[no-any-return]
    if name not in _added():
        raise UsageError(f"no such command: {name}", did_you_mean(name, names()))
    return _added_command(_added()[name])


def _added_command(plugin: Plugin) -> Command:
    command = getattr(plugin.load(), "COMMAND", None)
    if not isinstance(command, Command) or command.name != plugin.name or command.makes not in (None, "evaluations"):
        raise plugin.unusable(".COMMAND must be a Command of that name that makes evaluations, or nothing")
    return replace(command, module=plugin.place)


def all_commands() -> dict[str, Command]:
    """All commands by name, in the order of the help; warns of plug-in commands that cannot be loaded."""
    found = {}
    for name in names():
        try:
            found[name] = find_command(name)
        except InputError as error:
            warnings.warn(error.message, SentcompressWarning, stacklevel=2)
    return found


def makers() -> dict[str, Command]:
    """The commands that write an artifact, by name."""
    return {name: command for name, command in all_commands().items() if command.makes}


def takes_name(name: str) -> bool:
    """Whether users can name the result of a command; True for an unknown command."""
    return name not in names() or "name" in keys_of(find_command(name).params)


def options_of(name: str) -> type[Options] | None:
    """The options of a command of this package; None for another one."""
    return find_command(name).params if name in NAMES else None


def version_of(name: str) -> int:
    """The version of a command; 1 for an unknown command."""
    return find_command(name).version if name in names() else 1
