"""What to tell about an error that no stage foresaw: disk, limits, permissions, memory, or a bug of ours."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

FULL = ("the disk is full", "what was finished is kept; free some space and run the same command again")
BROKEN_HINT = "check the disk; what was finished is kept, and the same command goes on with it"
SYSTEM_HINT = "what was finished is kept; once the cause is removed, the same command goes on with it"
LIMIT_HINT = "raise the limit (ulimit -f), or choose another disk"
DEFECT_HINT = "this is a defect of sentcompress; SENTCOMPRESS_DEBUG=1 shows where it happened"
# safetensors and tokenizers keep the number in their words only.
OS_ERROR = re.compile(r"\(os error (\d+)\)")
# What torch and NumPy say when they write to a file themselves: the reason is lost.
CUT_SHORT = re.compile(
    r"PytorchStreamWriter failed writing|inline_container.*unexpected pos|\d+ requested and \d+ written"
)


def explain(error: Exception) -> tuple[str, str | None]:
    """The message and the hint for any error."""
    text = str(error).strip() or type(error).__name__
    numbers = list(_numbers(error))
    if errno.EFBIG in numbers:
        return _too_large(error)
    if errno.ENOSPC in numbers or errno.EDQUOT in numbers or "No space left on device" in text:
        return FULL
    if CUT_SHORT.search(text):
        limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
        return _too_large(error) if limited else FULL
    if numbers and numbers[0] in (errno.EROFS, errno.EACCES, errno.EPERM):
        return _forbidden(error, numbers[0])
    if errno.EIO in numbers:
        return f"the disk could not read or write: {_place(error)}", BROKEN_HINT
    if isinstance(error, OSError) or OS_ERROR.search(text):
        return _place(error), SYSTEM_HINT
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in text:
        return f"out of memory: {text.splitlines()[0]}", "use a smaller --batch-size or --batch-tokens"
    return f"{type(error).__name__}: {text.splitlines()[0]}", DEFECT_HINT


def _numbers(error: BaseException) -> Iterator[int]:
    """The numbers of an error and of those that led to it: torch raises its own when a stream cannot be written."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, OSError) and cause.errno is not None:
            yield cause.errno
        elif found := OS_ERROR.search(str(cause)):
            yield int(found[1])
        elif cause is error:
            yield 0  # the permissions of an earlier error explain nothing
        cause = cause.__cause__ or cause.__context__


def _place(error: Exception) -> str:
    """What the system said, and of which file."""
    name, said = getattr(error, "filename", None), getattr(error, "strerror", None)
    return f"{said}: {name}" if said and name else str(error).strip().splitlines()[0]


def _too_large(error: Exception) -> tuple[str, str]:
    name = getattr(error, "filename", None)
    return f"too large a file for this disk or for your limits{f': {name}' if name else ''}", LIMIT_HINT


def _forbidden(error: Exception, number: int) -> tuple[str, str]:
    """Whether reading or writing was forbidden is not in the error; the rights of the file tell."""
    name = getattr(error, "filename", None)
    if name is None:
        return f"no permission: {error}", "choose a folder you may write to, and inputs you may read"
    if number != errno.EROFS and (hidden := _unreadable(Path(os.fsdecode(name)))):
        return f"no permission to read {hidden}", "ask its owner for the right to read it, or make it anew"
    return f"no permission to write {name}", "choose a folder you may write to"


def _unreadable(path: Path) -> Path | None:
    """The file that may not be read, or the folder above it that may not be entered; None if all of them may."""
    for folder in reversed(path.absolute().parents):
        if folder.is_dir() and not os.access(folder, os.X_OK):
            return folder
    wanted = os.R_OK | os.X_OK if path.is_dir() else os.R_OK
    return path if path.exists() and not os.access(path, wanted) else None
