"""Lock files for one writer at a time; the kernel releases them when the process ends, for whatever reason."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sentcompress.errors import BusyError, InputError

# Readers hold a lock only briefly, to check it or to finish a swap; a writer waits for them.
PATIENCE_SECONDS = 2.0
PAUSE_SECONDS = 0.02

_held: set[int] = set()


def _forget() -> None:
    # A worker process that outlives its killed parent must not keep the parent's lock.
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget)


@contextmanager
def locked(path: Path, what: str, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the lock file at `path`; it is created if needed and never removed.

    Args:
        what: what the lock protects, for the error.
        patience: seconds to wait for another holder.

    Raises:
        BusyError: if another process holds it; the message names the process.
        InputError: if the file system has no locks, or `path` is not a lock file.
    """
    descriptor = _open(path)
    _held.add(descriptor)
    try:
        _acquire(descriptor, path, what, time.monotonic() + patience)
        holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat()}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        yield
    finally:
        if descriptor in _held:
            _held.discard(descriptor)
            os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file at `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _open(path: Path) -> int:
    """The lock file, created if it does not exist; links are refused, so that no other file is opened."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _foreign(path) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise _foreign(path)
    return descriptor


def _foreign(path: Path) -> InputError:
    return InputError(f"{path} is a link or not a lock file of sentcompress", "remove it; nothing was written to it")


def _acquire(descriptor: int, path: Path, what: str, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _busy(descriptor, what) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
                raise
            raise InputError(
                f"the file system of {path.parent} has no file locks",
                "choose a `work` on another one (Lustre: -o flock)",
            ) from None
        time.sleep(PAUSE_SECONDS)


def _busy(descriptor: int, what: str) -> BusyError:
    who = "another process"
    with suppress(ValueError, KeyError, TypeError):
        holder = json.loads(os.pread(descriptor, 4096, 0))
        who = f"process {holder['pid']} on {holder['host']}, since {holder['since'][:19]} UTC"
    return BusyError(f"{what} is being written by {who}", "wait for it, or choose another `name` or `work`")
