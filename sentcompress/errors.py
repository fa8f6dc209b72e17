"""The errors that a user sees: what went wrong, and what to do about it.

Every stage raises one of these for anything that a user can cause. The command line turns it into
two lines (`error: ...`, `help: ...`) and an exit code; no traceback is shown. Messages name an option by its field in
backquotes, as in Python; only the command line spells flags.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Sequence
from typing import Self

# The most faults, and the longest one in characters, that a message shows.
MOST_FAULTS = 40
LONGEST_FAULT = 600


class SentcompressError(Exception):
    """A failure that the user can understand and act on."""

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def reworded(self, message: str, hint: str | None) -> Self:
        """A copy of the error with another message and hint; everything else that it carries is kept."""
        other = copy.copy(self)
        other.args = (message,)
        other.message, other.hint = message, hint
        return other


class UsageError(SentcompressError):
    """The command was called wrongly: an unknown name, a value out of range, options that clash.

    Args:
        faults: each fault by itself, where the message lists several.
    """

    exit_code = 2

    def __init__(self, message: str, hint: str | None = None, faults: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.faults = tuple(faults)


class InputError(SentcompressError):
    """A file, folder or model that was named cannot be used as it is."""


class DamagedError(InputError):
    """An artifact has lost files, or its manifest cannot be read."""


class MissingArtifactError(SentcompressError):
    """A stage needs the result of another one that has not been run."""


class BusyError(SentcompressError):
    """Another process is writing the same artifact."""


class TrainingError(SentcompressError):
    """Training cannot go on: the loss is no longer a number."""


class SentcompressWarning(UserWarning):
    """Something that the user may want to change, such as a student that collapsed."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name: the nearest known ones, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"choose one of: {', '.join(names)}"


def raise_faults(faults: list[str], what: str, hint: str | None = None) -> None:
    """Report all faults of a request at once; long lists and long texts are cut.

    Args:
        what: the command, and perhaps what it was given.
        hint: by default, the command's `--help`.

    Raises:
        UsageError: if there is at least one fault.
    """
    if not faults:
        return
    shown = [fault if len(fault) <= LONGEST_FAULT else f"{fault[:LONGEST_FAULT]}..." for fault in faults[:MOST_FAULTS]]
    more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
    lines = "".join(f"\n  - {fault}" for fault in [*shown, *more])
    message = f"{what}: {shown[0]}" if len(faults) == 1 else f"{what}: {len(faults)} faults{lines}"
    raise UsageError(message, hint or f"run: sentcompress {what.split()[0]} --help", faults)
