"""Lock files for one writer at a time; the kernel releases them when the process ends, for whatever reason.

The file says who holds the lock, and is empty when nobody does. Where locks may end at this machine or at this mount, a
holder also creates the file `<lock>.claim`, exclusively, and removes it at the end. A claim from elsewhere counts as
long as it exists: whether its process still runs cannot be told from here.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from sentcompress.errors import BusyError, InputError
from sentcompress.progress import Reporter
from sentcompress.store.mounts import locks_everywhere

# Readers hold a lock only briefly, to check it or to finish a swap; a writer waits for them.
PATIENCE_SECONDS = 2.0
# Pauses between two tries, which become longer: over a network each of them is a request.
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 1.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Links are refused, so that no other file is read or written; a named pipe does not block.
READING = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
WRITING = os.O_RDWR | READING

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
        machine: the running kernel and the device of the lock file. Tells machines of one host name apart, a machine
            from itself before it was restarted, and two mounts of one folder, which may not share their locks.
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


class State(Enum):
    """The state of a lock. UNSURE: claimed from another machine or mount, by a process that runs or was killed."""

    FREE = "free"
    HELD = "held"
    UNSURE = "unsure"


class Lock:
    """A lock that this process holds."""

    def __init__(self, path: Path, descriptor: int, what: str, holder: Holder, claimed: bool) -> None:
        self._path, self._descriptor, self._what = path, descriptor, what
        self._holder, self._claimed = holder, claimed

    def check(self) -> None:
        """Read the holder back, before something is replaced.

        Raises:
            BusyError: if it is not this process any more: a user removed the files of the lock, or a server gave the
                lock to another machine after it had lost the connection to this one.
        """
        path = claim_of(self._path) if self._claimed else self._path
        # Opened anew: NFS then asks the server.
        found = _holder_in(path)
        if found != self._holder:
            now = f"it is held by {found}" if found else f"{path} was removed or overwritten"
            raise BusyError(
                f"this process has lost its lock on {self._what}: {now}", "nothing was replaced; run the command again"
            )

    def release(self) -> None:
        """Release the lock; a forked child no longer has it."""
        if self._descriptor not in _held:
            return
        with suppress(OSError):  # a full or lost disk; the kernel releases the lock all the same
            if self._claimed and _holder_in(claim_of(self._path)) == self._holder:
                claim_of(self._path).unlink()
        with suppress(OSError):
            if _read_holder(self._descriptor) == self._holder:
                os.ftruncate(self._descriptor, 0)


def this_machine() -> str:
    """An identifier of the running kernel; the host name if there is nothing better."""
    with suppress(OSError):
        return BOOT_ID.read_text(encoding="ascii").strip()
    return socket.gethostname()


def claim_of(path: Path) -> Path:
    """The file that claims the lock file at `path` where locks may end at this machine or at this mount."""
    return path.with_name(f"{path.name}.claim")


@contextmanager
def locked(
    path: Path, what: str, patience: float = PATIENCE_SECONDS, wanted: Callable[[], bool] = lambda: True
) -> Iterator[Lock]:
    """Hold the lock file at `path`; it is created if needed and never removed.

    Args:
        what: what the lock protects, for the error.
        patience: seconds to wait for another holder; the time in which this process is paused does not count.
        wanted: whether to go on waiting; called again and again while there is another holder.

    Raises:
        BusyError: if another process holds it, or one on another machine may hold it; the message names the process.
        InputError: if the file system has no locks, or `path` is not a lock file.
    """
    descriptor = _open(path)
    _held.add(descriptor)
    try:
        lock = _acquired(descriptor, path, what, patience, wanted)
        try:
            yield lock
        finally:
            lock.release()
    finally:
        if descriptor in _held:
            _held.discard(descriptor)
            os.close(descriptor)


@contextmanager
def locked_when_free(
    path: Path, what: str, patience: float, reporter: Reporter, wanted: Callable[[], bool] = lambda: True
) -> Iterator[Lock]:
    """Hold a lock as `locked` does, and report if this takes a while.

    Raises:
        BusyError, InputError: see `locked`.
    """
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(locked(path, what, min(patience, PATIENCE_SECONDS), wanted))
        except BusyError as busy:
            if not wanted():
                raise
            if patience <= PATIENCE_SECONDS:
                raise busy.reworded(busy.message, ("use `wait` 30m", *busy.alternatives)) from None
            reporter.note(f"waiting: {busy.message}")
            with reporter.phase(f"waiting for {what}"):
                lock = stack.enter_context(locked(path, what, patience, wanted))
        yield lock


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock file at `path`, or one on another machine may hold it."""
    return state_of(path) is not State.FREE


def state_of(path: Path) -> State:
    """Whether a process holds the lock file at `path`."""
    try:
        descriptor = os.open(path, os.O_RDONLY | READING)
    except OSError:
        return State.FREE
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        elsewhere = not locks_everywhere(descriptor) and _is_claimed_elsewhere(descriptor, path)
        return State.UNSURE if elsewhere else State.FREE
    except BlockingIOError:
        return State.HELD
    except OSError:
        return State.FREE
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock file at `path`, or was killed while holding it; None if it does not say."""
    return _holder_in(path) or _holder_in(claim_of(path))


def _open(path: Path) -> int:
    """The lock file, created if it does not exist."""
    try:
        descriptor = os.open(path, WRITING | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _foreign(path) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(descriptor)
        raise _foreign(
            path, "has hard links, as after `cp -al`, or" if stat.S_ISREG(found.st_mode) else "is a link, or"
        )
    return descriptor


def _foreign(path: Path, what: str = "is a link, or") -> InputError:
    return InputError(f"{path} {what} is not a lock file of sentcompress", "remove it; nothing was written to it")


def _acquired(descriptor: int, path: Path, what: str, patience: float, wanted: Callable[[], bool]) -> Lock:
    left, pause = patience, PAUSE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            holder, claimed = _this_process(descriptor), not locks_everywhere(descriptor)
            if not claimed or _claim(descriptor, path, holder):
                lock = Lock(path, descriptor, what, holder, claimed)
                try:
                    _sign(descriptor, holder)
                except BaseException:
                    lock.release()
                    raise
                return lock
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            if left <= 0 or not wanted():
                raise _unsure(path, what)
        except BlockingIOError:
            if left <= 0 or not wanted():
                raise _busy(path, what) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP):
                raise
            raise InputError(
                f"the file system of {path.parent} has no file locks",
                "choose a `work` on another one (Lustre: -o flock)",
            ) from None
        pause = min(pause, left)
        time.sleep(pause)
        left, pause = left - pause, min(1.2 * pause, LONGEST_PAUSE_SECONDS)


def _this_process(descriptor: int) -> Holder:
    since, job = datetime.now(UTC).isoformat(), os.environ.get("SLURM_JOB_ID", "")
    return Holder(os.getpid(), socket.gethostname(), since, _machine_of(descriptor), job)


def _machine_of(descriptor: int) -> str:
    """Where the locks of an open file hold at least."""
    return f"{this_machine()} {os.fstat(descriptor).st_dev}"


def _claim(descriptor: int, path: Path, holder: Holder) -> bool:
    """Create the claim of a lock that is free here. That of a process of this machine is taken over: it is dead."""
    try:
        claim = os.open(claim_of(path), WRITING | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        if _is_claimed_elsewhere(descriptor, path):
            return False
        try:
            claim = os.open(claim_of(path), WRITING)
        except FileNotFoundError:
            return False  # removed meanwhile: try again
    try:
        _sign(claim, holder)
    except BaseException:  # a full disk, a signal: an empty claim would be nobody's
        claim_of(path).unlink(missing_ok=True)
        raise
    finally:
        os.close(claim)
    return True


def _is_claimed_elsewhere(descriptor: int, path: Path) -> bool:
    """Whether there is a claim of another machine or mount, or one that does not say whose it is."""
    holder = _holder_in(claim_of(path))
    return os.path.lexists(claim_of(path)) if holder is None else holder.machine != _machine_of(descriptor)


def _sign(descriptor: int, holder: Holder) -> None:
    """Say in a file who holds the lock."""
    written = os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
    os.ftruncate(descriptor, written)
    os.fsync(descriptor)  # for readers on other machines


def _holder_in(path: Path) -> Holder | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | READING)
    except OSError:
        return None
    try:
        return _read_holder(descriptor)
    finally:
        os.close(descriptor)


def _read_holder(descriptor: int) -> Holder | None:
    with suppress(OSError, ValueError, TypeError):
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    return None


def _unsure(path: Path, what: str) -> BusyError:
    who = _holder_in(claim_of(path)) or "an unknown process"
    return BusyError(
        f"{what} is being written by {who}; locks on this file system may be local to one machine or mount, so it is "
        "unknown whether that process is still running",
        f"wait for it, or, if it has ended, remove {claim_of(path)}",
    )


def _busy(path: Path, what: str) -> BusyError:
    who = holder_of(path) or "another process"
    return BusyError(f"{what} is being written by {who}", ("wait for it", "choose another `name` or `work`"))
