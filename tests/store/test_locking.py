"""Locks on shared file systems: who holds one, on which machine, and what is never broken by guess."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest
from listening import Listener

from sentcompress.errors import BusyError
from sentcompress.store import locking
from sentcompress.store.locking import Holder, holder_of, is_locked, locked, locked_when_free
from sentcompress.store.mounts import locks_everywhere

ELSEWHERE = Holder(4711, "node3", "2026-05-01T10:00:00.123+00:00", "another-kernel", job="812")
TABLE = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime - nfs4 server:/home rw,vers=4.2,local_lock=none
31 22 0:41 / /old rw,relatime - nfs server:/old rw,vers=3,nolock,local_lock=all
32 22 0:42 / /scratch rw - lustre mgs:/scratch rw,flock
33 22 0:43 / /fast rw - lustre mgs:/fast rw,localflock
34 22 0:44 / /bee rw - beegfs beegfs_nodev rw
35 30 0:45 / /home/me/my\040data rw - fuse.sshfs me@host: rw
36 30 8:2 / /home/local rw - xfs /dev/sdb rw
37 22 0:46 / /twice rw - nfs4 a:/ rw
38 22 0:47 / /twice rw - beegfs b rw
short line
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / ".small.lock"


@pytest.fixture
def unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose locks may end at this machine."""
    monkeypatch.setattr(locking, "locks_everywhere", lambda path: False)


def test_the_file_names_the_holder_and_is_emptied_at_the_end(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    with locked(lock, "students/small"):
        holder = holder_of(lock)
        assert holder is not None
        assert (holder.pid, holder.machine, holder.job) == (os.getpid(), locking.this_machine(), "99")
        assert is_locked(lock)
        with pytest.raises(BusyError, match=rf"by process {os.getpid()} on .* \(job 99\), since 20"):
            locked(lock, "students/small", patience=0).__enter__()
        assert holder_of(lock) == holder
    assert lock.read_bytes() == b""
    assert holder_of(lock) is None
    assert not is_locked(lock)


def test_a_holder_on_another_machine_is_waited_for_where_locks_may_be_local(lock: Path, unsure: None) -> None:
    lock.write_text(json.dumps(asdict(ELSEWHERE)))
    assert is_locked(lock)
    with pytest.raises(BusyError, match=r"process 4711 on node3 \(job 812\), since 2026-05-01T10:00:00") as raised:
        locked(lock, "students/small", patience=0).__enter__()
    assert "cannot be told from here" in raised.value.message
    assert raised.value.hint == f"wait for it, or, if it has ended, remove {lock}"
    assert holder_of(lock) == ELSEWHERE
    lock.write_text("")  # as it does when it ends
    with locked(lock, "students/small", patience=0):
        assert is_locked(lock)


def test_a_killed_holder_on_this_machine_is_known_to_be_dead_even_there(lock: Path, unsure: None) -> None:
    here = asdict(ELSEWHERE) | {"machine": locking.this_machine()}
    lock.write_text(json.dumps(here))
    assert not is_locked(lock)
    with locked(lock, "students/small", patience=0):
        assert is_locked(lock)


def test_where_locks_hold_everywhere_a_killed_holder_on_another_machine_is_followed(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was killed with its node goes on on another one."""
    monkeypatch.setattr(locking, "locks_everywhere", lambda path: True)
    lock.write_text(json.dumps(asdict(ELSEWHERE)))
    assert not is_locked(lock)
    with locked(lock, "students/small", patience=0):
        holder = holder_of(lock)
        assert holder is not None
        assert holder.pid == os.getpid()


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"pid": 1}', '{"pid": 1, "other": 2}'])
def test_a_file_that_names_nobody_is_free(lock: Path, unsure: None, text: str) -> None:
    lock.write_text(text)
    assert holder_of(lock) is None
    with locked(lock, "students/small", patience=0):
        pass


@pytest.mark.parametrize(
    ("path", "everywhere"),
    [
        ("/srv/work", True),
        ("/home/me/work", True),
        ("/homework", True),  # on /, not on /home
        ("/old/work", False),
        ("/scratch/work", True),
        ("/fast/work", False),
        ("/bee", False),
        ("/home/me/my data/work", False),
        ("/home/local/work", True),
        ("/twice/work", False),
    ],
)
def test_what_the_table_of_mounts_says(tmp_path: Path, path: str, everywhere: bool) -> None:
    (tmp_path / "mounts").write_text(TABLE)
    assert locks_everywhere(Path(path), tmp_path / "mounts") is everywhere


def test_without_a_table_of_mounts_the_kernel_is_believed(tmp_path: Path) -> None:
    assert locks_everywhere(tmp_path, tmp_path / "none")


@contextmanager
def held_until(lock: Path, end: threading.Event) -> Iterator[None]:
    """The lock is held by another thread, for flock another holder."""
    begun = threading.Event()

    def hold() -> None:
        with locked(lock, "students/small"):
            begun.set()
            end.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(20)
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_who_waits_says_for_whom_and_gets_the_lock(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "PATIENCE_SECONDS", 0.05)
    end = threading.Event()

    class Releasing(Listener):
        def note(self, message: str) -> None:
            super().note(message)
            end.set()

    reporter = Releasing()
    with held_until(lock, end), locked_when_free(lock, "students/small", 20, reporter):
        assert reporter.notes[0].startswith(f"waiting: students/small is being written by process {os.getpid()} on ")


def test_who_waits_too_long_is_told_who_still_writes(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "PATIENCE_SECONDS", 0.01)
    with held_until(lock, threading.Event()):
        for seconds, hint in ((0.2, "wait for it, or"), (0.0, "use `wait` 30m, or wait for it")):
            with pytest.raises(BusyError, match="is being written by process") as raised:
                locked_when_free(lock, "students/small", seconds, Listener()).__enter__()
            assert str(raised.value.hint).startswith(hint)
