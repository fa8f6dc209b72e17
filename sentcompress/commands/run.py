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

    recipe: Annotated[Path, Opt("A recipe: a TOML file that lists stages.", positional=True, metavar="RECIPE")]
    variant: Annotated[str | None, Opt("Variant of the recipe, such as tinybert-128.")] = None
    inputs: Annotated[
        tuple[str, ...],
        Opt("Input of the recipe; can be repeated.", flag="input", metavar="NAME=FILE"),
    ] = ()
    settings: Annotated[
        tuple[str, ...],
        Opt(
            "Override an option of a stage. STAGE is a command, a number, or all; STAGE.set.NAME=VALUE is an option "
            "of the method.",
            flag="set",
            metavar="STAGE.OPTION=VALUE",
        ),
    ] = ()
    only: Annotated[
        tuple[str, ...],
        Opt(
            "Run only these stages, by number, command or name of the result; can be repeated.",
            metavar="STAGE",
            affects="run",
        ),
    ] = ()
    first: Annotated[str | None, Opt("Begin with this stage.", flag="from", metavar="STAGE", affects="run")] = None
    last: Annotated[str | None, Opt("End with this stage.", flag="until", metavar="STAGE", affects="run")] = None
    exact: Annotated[
        bool, Opt("Stop if an input is not the file that the recipe names by its SHA-256.", affects="run")
    ] = False
    dry_run: Annotated[bool, Opt("Check everything and print the commands, but run none.", affects="run")] = False
    force: Annotated[bool, Opt("Rerun every stage, even if up to date.", affects="run")] = False


COMMAND = Command(Params, "Run the stages of a recipe, a TOML file; stages that are up to date are skipped.")
