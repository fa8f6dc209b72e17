"""The options of `sentcompress status`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt, Options


@dataclass(frozen=True, kw_only=True)
class Params(Options):
    """What to check."""

    command: ClassVar[str] = "status"

    verify: Annotated[bool, Opt("Compare the SHA-256 of every file; exit 1 if one differs.")] = False


COMMAND = Command(
    Params, "List the results of the work directory. Each has a state, such as fresh or stale, and the reason for it."
)
