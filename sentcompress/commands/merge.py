"""The options of `sentcompress merge`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt, Options


@dataclass(frozen=True, kw_only=True)
class Params(Options):
    """What to merge."""

    command: ClassVar[str] = "merge"

    what: Annotated[
        str | None,
        Opt(
            "Result to merge: KIND/NAME or KIND, such as teacher-vectors, or the output folder of encode. Default: "
            "the only one being made in shards.",
            positional=True,
            metavar="[KIND/NAME]",
            affects="input",
        ),
    ] = None


COMMAND = Command(Params, "Merge the shards of an artifact. All of them must be finished.")
