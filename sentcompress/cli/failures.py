"""Messages for errors that no command handles: disk, limits, permissions, memory, or a bug in sentcompress."""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Iterator
from pathlib import Path

from sentcompress.errors import Hint

FULL = "the disk is full"
FULL_HINT = "free some space and run the same command again; finished work is kept"
BROKEN_HINT = "check the disk, then run the same command again; it resumes where it stopped"
SYSTEM_HINT = "fix the cause, then run the same command again; it resumes where it stopped"
LIMIT_HINT = "raise the limit (ulimit -f), or choose another disk"
# Of the options, the command line keeps those that the command has.
MEMORY_HINT = (
    "use a smaller `batch_size`",
    "use a smaller `batch_tokens`",
    "free some memory, or use a machine with more",
)
DEFECT_HINT = "this is a bug in sentcompress; set SENTCOMPRESS_DEBUG=1 to see the traceback"
# safetensors and tokenizers report the error number only in the text.
OS_ERROR = re.compile(r"\(os error (\d+)\)")
# What store.atomic calls a file until it is complete.
UNFINISHED = re.compile(r"\.(.+)\.tmp")
# What torch reports on a CPU, and where the device has no room for CUDA itself; and other libraries in C++.
NO_MEMORY = re.compile(r"can't allocate memory|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED|std::bad_alloc")
# What torch, NumPy and onnx report when they write to a file themselves; the system's reason is lost. onnx notices only
# when it reads the file.
CUT_SHORT = re.compile(
    r"PytorchStreamWriter failed writing|inline_container.*unexpected pos|\d+ requested and \d+ written"
    r"|Error parsing message with type 'onnx"
)


def explain(error: Exception) -> tuple[str, Hint]:
    """The message and the hint for an error; the hint can be several alternatives, as those of a SentcompressError."""
    text = str(error).strip() or type(error).__name__
    numbers = list(_numbers(error))
    if errno.EFBIG in numbers:
        return _too_large(error)
    if errno.ENOSPC in numbers or errno.EDQUOT in numbers or "No space left on device" in text:
        name = _named(error)
        return (f"{FULL}: {name}" if name else FULL), FULL_HINT
    if CUT_SHORT.search(text):
        limited = resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY
        return _too_large(error) if limited else (FULL, FULL_HINT)
    if numbers and numbers[0] in (errno.EROFS, errno.EACCES, errno.EPERM):
        return _forbidden(error, numbers[0])
    if errno.EIO in numbers:
        return f"the disk failed to read or write: {_place(error)}", BROKEN_HINT
    if errno.ENAMETOOLONG in numbers:
        return _place(error), "check the path"
    if isinstance(error, OSError) or OS_ERROR.search(text):
        return _place(error), SYSTEM_HINT
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or NO_MEMORY.search(text):
        return f"out of memory: {text.splitlines()[0]}", MEMORY_HINT
    return f"{type(error).__name__}: {text.splitlines()[0]}", DEFECT_HINT


def _numbers(error: BaseException) -> Iterator[int]:
    """The errno of an error and of its causes: torch raises its own error when a stream cannot be written."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, OSError) and cause.errno is not None:
            yield cause.errno
        elif found := OS_ERROR.search(str(cause)):
            yield int(found[1])
        elif cause is error:
            yield 0  # an earlier permission error does not explain this one
        cause = cause.__cause__ or cause.__context__


def _named(error: Exception) -> str | None:
    """The file that an error concerns; for a temporary file, the one that it is to become."""
    name = getattr(error, "filename", None)
    if name is None:
        return None
    path = Path(os.fsdecode(name))
    return str(path.with_name(unfinished[1])) if (unfinished := UNFINISHED.fullmatch(path.name)) else str(path)


def _place(error: Exception) -> str:
    """The system's message and the file that it concerns."""
    name, said = _named(error), getattr(error, "strerror", None)
    return f"{said}: {name}" if said and name else str(error).strip().splitlines()[0]


def _too_large(error: Exception) -> tuple[str, str]:
    name = _named(error)
    return f"the file is too large for this disk or for your limits{f': {name}' if name else ''}", LIMIT_HINT


def _forbidden(error: Exception, number: int) -> tuple[str, str]:
    """A permission error; the permissions of the file tell whether reading or writing was denied."""
    name = _named(error)
    if name is None:
        return f"no permission: {error}", "choose a folder that you can write to, and inputs that you can read"
    if number != errno.EROFS and (hidden := _unreadable(Path(os.fsdecode(name)))):
        return f"no permission to read {hidden}", "ask its owner for read permission, or create it again"
    return f"no permission to write {name}", "choose a folder that you can write to"


def _unreadable(path: Path) -> Path | None:
    """The file that cannot be read, or the parent folder that cannot be entered; None if all can."""
    for folder in reversed(path.absolute().parents):
        if folder.is_dir() and not os.access(folder, os.X_OK):
            return folder
    wanted = os.R_OK | os.X_OK if path.is_dir() else os.R_OK
    return path if path.exists() and not os.access(path, wanted) else None
