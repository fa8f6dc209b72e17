"""The options of `sentcompress run`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt, Options


@dataclass(frozen=True, kw_only=True)
class Params(Options):
    """The recipe, its inputs, and overrides of its options."""

    command: ClassVar[str] = "run"

    recipe: Annotated[
        Path,
        Opt("A TOML file that lists stages, each of them a command with options.", positional=True, metavar="RECIPE"),
    ]
    variant: Annotated[str | None, Opt("Variant of the recipe, such as tinybert-128; required if it has variants.")] = (
        None
    )
    inputs: Annotated[
        tuple[str, ...],
        Opt("File for an input of the recipe; can be repeated.", flag="input", metavar="NAME=FILE"),
    ] = ()
    settings: Annotated[
        tuple[str, ...],
        Opt(
            "Override an option of a stage; STAGE is a command, a number, or all. STAGE.set.NAME=VALUE sets an option "
            "of the method. Can be repeated.",
            flag="set",
            metavar="STAGE.OPTION=VALUE",
        ),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        Opt(
            "Run only this stage: a number, a command or the name of a result; can be repeated.",
            metavar="STAGE",
            affects="run",
        ),
    ] = ()
    first: Annotated[
        str | None, Opt("Begin with this stage, named as for --only.", flag="from", metavar="STAGE", affects="run")
    ] = None
    last: Annotated[
        str | None, Opt("End with this stage, named as for --only.", flag="until", metavar="STAGE", affects="run")
    ] = None
    exact: Annotated[bool, Opt("Stop if the SHA-256 of an input is not the one in the recipe.", affects="run")] = False
    dry_run: Annotated[bool, Opt("Check everything and print the commands, but run none.", affects="run")] = False
    force: Annotated[bool, Opt("Rerun every stage, even if up to date.", affects="run")] = False


COMMAND = Command(Params, "Run the stages of a recipe, a TOML file. Stages that are up to date are skipped.")
