"""Lock files for one writer at a time; the kernel releases them when the process ends, for whatever reason.

The file says who holds the lock, and is empty when nobody does. On a file system whose locks may end at this machine,
a holder on another one counts until it has emptied the file: whether it still runs cannot be told from here.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from sentcompress.errors import BusyError, InputError
from sentcompress.progress import Reporter
from sentcompress.store.mounts import locks_everywhere

# Readers hold a lock only briefly, to check it or to finish a swap; a writer waits for them.
PATIENCE_SECONDS = 2.0
# Pauses between two tries, which become longer: over a network each of them is a request.
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 1.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_held: set[int] = set()


def _forget() -> None:
    # A worker process that outlives its killed parent must not keep the parent's lock.
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget)


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock, or that was killed while it did.

    Attributes:
        machine: tells machines of the same host name apart, and a machine from itself before it was restarted.
        job: the job of a scheduler, if it is one.
    """

    pid: int
    host: str
    since: str
    machine: str
    job: str = ""

    def __str__(self) -> str:
        job = f" (job {self.job})" if self.job else ""
        return f"process {self.pid} on {self.host}{job}, since {self.since[:19]} UTC"


def this_machine() -> str:
    """What identifies the running kernel; the host name where there is nothing better."""
    with suppress(OSError):
        return BOOT_ID.read_text(encoding="ascii").strip()
    return socket.gethostname()


@contextmanager
def locked(path: Path, what: str, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the lock file at `path`; it is created if needed and never removed.

    Args:
        what: what the lock protects, for the error.
        patience: seconds to wait for another holder.

    Raises:
        BusyError: if another process holds it, or one on another machine may hold it; the message names the process.
        InputError: if the file system has no locks, or `path` is not a lock file.
    """
    descriptor = _open(path)
    _held.add(descriptor)
    try:
        _acquire(descriptor, path, what, patience)
        _sign(descriptor)
        try:
            yield
        finally:
            _empty(descriptor)
    finally:
        if descriptor in _held:
            _held.discard(descriptor)
            os.close(descriptor)


def _sign(descriptor: int) -> None:
    """Say who holds the lock."""
    since, job = datetime.now(UTC).isoformat(), os.environ.get("SLURM_JOB_ID", "")
    holder = Holder(os.getpid(), socket.gethostname(), since, this_machine(), job)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
    os.fsync(descriptor)  # for readers on other machines


@contextmanager
def locked_when_free(path: Path, what: str, patience: float, reporter: Reporter) -> Iterator[None]:
    """Hold a lock as `locked` does, and tell the user if that takes a while.

    Raises:
        BusyError, InputError: see `locked`.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, what, min(patience, PATIENCE_SECONDS)))
        except BusyError as busy:
            if patience <= PATIENCE_SECONDS:
                raise busy.reworded(busy.message, f"use `wait` 30m, or {busy.hint}") from None
            reporter.note(f"waiting: {busy.message}")
            with reporter.phase(f"waiting for {what}"):
                stack.enter_context(locked(path, what, patience))
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file at `path`, or one on another machine may hold it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return _may_be_held_elsewhere(descriptor, path)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock file at `path`, or was killed while holding it; None if it does not say."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)


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


def _acquire(descriptor: int, path: Path, what: str, patience: float) -> None:
    deadline, pause = time.monotonic() + patience, PAUSE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _may_be_held_elsewhere(descriptor, path):
                return
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            if time.monotonic() >= deadline:
                raise _unsure(descriptor, path, what)
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
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(1.2 * pause, LONGEST_PAUSE_SECONDS)


def _empty(descriptor: int) -> None:
    """Say that nobody holds the lock any more; a forked child has lost it already."""
    if descriptor in _held:
        with suppress(OSError):  # a full or lost disk; the kernel releases the lock all the same
            os.ftruncate(descriptor, 0)


def _read_holder(descriptor: int) -> Holder | None:
    with suppress(OSError, ValueError, TypeError):
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    return None


def _may_be_held_elsewhere(descriptor: int, path: Path) -> bool:
    """Whether the lock, which is free on this machine, has a holder on another one where it may not be free."""
    holder = _read_holder(descriptor)
    return holder is not None and holder.machine != this_machine() and not locks_everywhere(path)


def _unsure(descriptor: int, path: Path, what: str) -> BusyError:
    return BusyError(
        f"{what} is being written by {_read_holder(descriptor)}; locks of this file system may hold on one machine "
        "only, so it cannot be told from here whether that process still runs",
        f"wait for it, or, if it has ended, remove {path}",
    )


def _busy(descriptor: int, what: str) -> BusyError:
    who = _read_holder(descriptor) or "another process"
    return BusyError(f"{what} is being written by {who}", "wait for it, or choose another `name` or `work`")
