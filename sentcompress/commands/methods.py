"""The options of `sentcompress methods`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt, Options
from sentcompress.errors import did_you_mean
from sentcompress.plain_text import shell_word


@dataclass(frozen=True, kw_only=True)
class Params(Options):
    """One method, or all of them."""

    command: ClassVar[str] = "methods"

    action: Annotated[str | None, Opt("show: print one method in full. Default: list all.", positional=True)] = None
    method: Annotated[str | None, Opt("Name of the method to show.", positional=True)] = None

    def faults(self) -> list[str]:
        from sentcompress.methods import METHODS, OBJECTIVES

        if self.action not in (None, "show"):
            known = self.action in METHODS or self.action in OBJECTIVES
            one = f"sentcompress methods show {shell_word(self.action)}" if known else ""
            all_of_them = "sentcompress methods, or sentcompress methods show NAME"
            return [f"no such action {self.action!r}; write: {one or all_of_them}"]
        if self.action and not self.method:
            return [f"name the method to show; {did_you_mean('', {**METHODS, **OBJECTIVES})}"]
        return []


COMMAND = Command(
    Params,
    "List the training objectives. `methods show hpd` prints its equation, options, and hyperparameters with sources.",
)
