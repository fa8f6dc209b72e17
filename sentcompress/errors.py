"""The errors that users see: what went wrong, and what to do.

Stages raise one of these for every error that a user can cause. The command line turns it into two lines
(`error: ...`, `help: ...`) and an exit code, without a traceback. Messages name an option by its field in backquotes,
as in Python; only the command line spells flags.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from sentcompress.exit_codes import BUSY, FAILED, USAGE

# Limits of a message: the number of errors listed, and the characters of each.
MOST_FAULTS = 40
LONGEST_FAULT = 600
# Between the alternatives of a hint.
OR = ", or "
Hint = str | Sequence[str] | None
# Letters of a mistyped name that are looked for inside the known names.
SHORTEST_PART = 3


class SentcompressError(Exception):
    """A failure that the user can understand and act on.

    Args:
        hint: what the user can do, or several alternatives. The command line leaves out those that name an option which
            the command does not have: readers of files, for example, serve many commands.
    """

    exit_code = FAILED

    def __init__(self, message: str, hint: Hint = None) -> None:
        super().__init__(message)
        self.message = message
        self.alternatives = _alternatives(hint)

    @property
    def hint(self) -> str | None:
        """All alternatives in one line; None if there are none."""
        return OR.join(self.alternatives) or None

    def reworded(self, message: str, hint: Hint) -> Self:
        """A copy of the error with another message and hint, and all other attributes."""
        other = copy.copy(self)
        other.args = (message,)
        other.message, other.alternatives = message, _alternatives(hint)
        return other

    def with_alternative(self, alternative: str, *, first: bool = False) -> Self:
        """A copy of the error whose hint has one more alternative, at the end or as the first."""
        own = self.alternatives
        return self.reworded(self.message, (alternative, *own) if first else (*own, alternative))


def _alternatives(hint: Hint) -> tuple[str, ...]:
    return (hint,) if isinstance(hint, str) else tuple(hint or ())


class UsageError(SentcompressError):
    """Wrong usage of a command: an unknown name, a value out of range, conflicting options.

    Args:
        faults: the individual errors, if the message lists several.
    """

    exit_code = USAGE

    def __init__(self, message: str, hint: Hint = None, faults: Sequence[str] = ()) -> None:
        super().__init__(message, hint)
        self.faults = tuple(faults)


class InputError(SentcompressError):
    """A given file, folder or model cannot be used."""


class DamagedError(InputError):
    """An artifact has missing or changed files, or its manifest cannot be read."""


class MissingArtifactError(SentcompressError):
    """A stage needs the result of another stage that has not been run."""


class BusyError(SentcompressError):
    """Another process is writing the same artifact: try again later."""

    exit_code = BUSY


class TrainingError(SentcompressError):
    """Training cannot continue because of a non-finite loss."""


class RankError(SentcompressError):
    """The ranks of a command under torchrun do not fit together, or one of them has ended."""


class SentcompressWarning(UserWarning):
    """A warning about something that the user may want to change, such as a collapsed student."""


def reason_of(error: BaseException) -> str:
    """The first line of another library's error; the name of its class if it has no message."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a mistyped name: the closest known names, or all of them."""
    names = sorted(known)
    plain = {name.lower().lstrip("-"): name for name in names}
    asked = word.lower().lstrip("-")
    alike = difflib.get_close_matches(asked, plain, n=3, cutoff=0.6)
    # A part of a name counts too: `ndcg` of ndcg_at_10.
    parts = [name for name in plain if len(asked) >= SHORTEST_PART and asked in name and name not in alike]
    close = [plain[name] for name in [*alike, *parts][:3]]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"choose one of: {', '.join(names)}"


def path_hint(path: Path, otherwise: str = "check the path") -> str:
    """A hint for a path that does not exist: the files and folders beside it with the closest names, else `otherwise`.

    >>> path_hint(Path("docs.jsnl"))
    'did you mean docs.jsonl?'
    """
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:  # its folder does not exist either, or cannot be listed
        return otherwise
    close = difflib.get_close_matches(path.name, beside, n=3, cutoff=0.75)
    return f"did you mean {' or '.join(str(path.with_name(name)) for name in close)}?" if close else otherwise


def raise_faults(faults: list[str], what: str, hint: str | None = None) -> None:
    """Report all errors of a request at once; long lists and long texts are truncated.

    Args:
        faults: the errors; nothing is raised if there are none.
        what: the command, optionally with its argument.
        hint: by default, points to the command's `--help`.

    Raises:
        UsageError: if there is at least one error.
    """
    if not faults:
        return
    shown = [fault if len(fault) <= LONGEST_FAULT else f"{fault[:LONGEST_FAULT]}..." for fault in faults[:MOST_FAULTS]]
    more = [f"and {len(faults) - MOST_FAULTS} more"] if len(faults) > MOST_FAULTS else []
    lines = "".join(f"\n  - {fault}" for fault in [*shown, *more])
    message = f"{what}: {shown[0]}" if len(faults) == 1 else f"{what}: {len(faults)} errors{lines}"
    raise UsageError(message, hint or f"run: sentcompress {what.split()[0]} --help", faults)
