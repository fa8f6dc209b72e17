"""Locks on shared file systems: who holds one, on which machine, and what is never broken by guess."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from listening import Listener

from sentcompress.errors import BusyError
from sentcompress.store import locking
from sentcompress.store.locking import Holder, State, claim_of, holder_of, is_locked, locked, locked_when_free, state_of
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
39 22 0:48 / /windows rw - cifs //server/share rw
short line
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / ".small.lock"


@pytest.fixture
def unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system whose locks may end at this machine."""
    monkeypatch.setattr(locking, "locks_everywhere", lambda descriptor: False)


def test_the_file_names_the_holder_and_is_emptied_at_the_end(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    with locked(lock, "students/small"):
        holder = holder_of(lock)
        assert holder is not None
        assert (holder.pid, holder.job) == (os.getpid(), "99")
        assert holder.machine == f"{locking.this_machine()} {lock.stat().st_dev}"
        assert is_locked(lock)
        with pytest.raises(BusyError, match=rf"by process {os.getpid()} on .* \(job 99\), since 20"):
            locked(lock, "students/small", patience=0).__enter__()
        assert holder_of(lock) == holder
    assert lock.read_bytes() == b""
    assert holder_of(lock) is None
    assert not is_locked(lock)


def test_where_locks_may_be_local_a_claim_of_another_machine_counts_until_it_is_removed(
    lock: Path, unsure: None
) -> None:
    claim_of(lock).write_text(json.dumps(asdict(ELSEWHERE)))
    lock.touch()
    assert state_of(lock) is State.UNSURE
    with pytest.raises(BusyError, match=r"process 4711 on node3 \(job 812\), since 2026-05-01T10:00:00") as raised:
        locked(lock, "students/small", patience=0).__enter__()
    assert "unknown whether that process is still running" in raised.value.message
    assert raised.value.hint == f"wait for it, or, if it has ended, remove {claim_of(lock)}"
    assert holder_of(lock) == ELSEWHERE
    claim_of(lock).unlink()  # as it does when it ends
    with locked(lock, "students/small", patience=0):
        assert state_of(lock) is State.HELD
        assert holder_of(lock) == json_holder(claim_of(lock))
    assert not claim_of(lock).exists()


@pytest.mark.parametrize("same_device", [True, False])
def test_a_killed_holder_on_this_machine_is_known_to_be_dead_if_it_used_the_same_mount(
    lock: Path, unsure: None, same_device: bool
) -> None:
    lock.touch()
    device = lock.stat().st_dev + (not same_device)
    dead = replace(ELSEWHERE, machine=f"{locking.this_machine()} {device}")
    claim_of(lock).write_text(json.dumps(asdict(dead)))
    assert is_locked(lock) is not same_device
    if not same_device:
        with pytest.raises(BusyError, match="local to one machine or mount"):
            locked(lock, "students/small", patience=0).__enter__()
        return
    with locked(lock, "students/small", patience=0):
        assert json_holder(claim_of(lock)).pid == os.getpid()
    assert not claim_of(lock).exists()


def test_where_locks_hold_everywhere_a_killed_holder_on_another_machine_is_followed(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was killed with its node goes on on another one; a claim from an earlier mount does not count."""
    monkeypatch.setattr(locking, "locks_everywhere", lambda descriptor: True)
    for path in (lock, claim_of(lock)):
        path.write_text(json.dumps(asdict(ELSEWHERE)))
    assert not is_locked(lock)
    with locked(lock, "students/small", patience=0):
        holder = holder_of(lock)
        assert holder is not None
        assert holder.pid == os.getpid()


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"pid": 1}', '{"pid": 1, "other": 2}'])
def test_a_lock_file_that_names_nobody_is_free_but_such_a_claim_is_not(lock: Path, unsure: None, text: str) -> None:
    lock.write_text(text)
    assert holder_of(lock) is None
    with locked(lock, "students/small", patience=0):
        pass
    claim_of(lock).write_text(text)
    with pytest.raises(BusyError, match="by an unknown process"):
        locked(lock, "students/small", patience=0).__enter__()
    assert claim_of(lock).read_text() == text


def test_a_link_in_place_of_a_claim_is_neither_followed_nor_removed(lock: Path, unsure: None, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    claim_of(lock).symlink_to(victim)
    with pytest.raises(BusyError):
        locked(lock, "students/small", patience=0).__enter__()
    assert claim_of(lock).is_symlink()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("failing", [1, 2])
def test_a_full_disk_leaves_no_claim(lock: Path, unsure: None, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    """Of the claim, or of the lock file after it."""
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == failing:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        locked(lock, "students/small", patience=0).__enter__()
    assert not claim_of(lock).exists()
    with locked(lock, "students/small", patience=0):
        pass


@pytest.mark.parametrize("everywhere", [True, False])
@pytest.mark.parametrize("how", ["removed", "overwritten", "replaced"])
def test_a_lock_is_read_back_before_something_is_replaced(
    lock: Path, monkeypatch: pytest.MonkeyPatch, everywhere: bool, how: str
) -> None:
    monkeypatch.setattr(locking, "locks_everywhere", lambda descriptor: everywhere)
    said = lock if everywhere else claim_of(lock)
    with locked(lock, "students/small") as mine:
        mine.check()
        if how != "overwritten":
            said.unlink()
        if how != "removed":
            said.write_text(json.dumps(asdict(ELSEWHERE)))
        told = "was removed" if how == "removed" else r"it is held by process 4711 on node3"
        with pytest.raises(BusyError, match=f"has lost its lock on students/small: .*{told}"):
            mine.check()
    # What another process wrote there stays.
    assert said.exists() is (how != "removed")
    if how != "removed":
        assert json_holder(said) == ELSEWHERE


def json_holder(path: Path) -> Holder:
    return Holder(**json.loads(path.read_text()))


def proc_of(folder: Path, mount: str) -> Path:
    """What the kernel tells of a process whose file 7 is on a mount of TABLE."""
    (folder / "fdinfo").mkdir()
    (folder / "fdinfo" / "7").write_text(f"pos:\t0\nflags:\t0100002\n{mount}ino:\t12\n")
    (folder / "mountinfo").write_text(TABLE)
    return folder


@pytest.mark.parametrize(
    ("mount", "everywhere"),
    [
        (22, True),  # ext4
        (30, True),  # NFS 4.2
        (31, False),  # nolock
        (32, True),  # Lustre, flock
        (33, False),  # Lustre, localflock
        (34, False),  # BeeGFS
        (35, False),  # FUSE
        (36, True),  # XFS
        (37, True),  # NFS, under another mount of the same place
        (38, False),
        (39, False),  # SMB
        (3, False),  # not in the table
    ],
)
def test_what_the_table_of_mounts_says(tmp_path: Path, mount: int, everywhere: bool) -> None:
    assert locks_everywhere(7, proc_of(tmp_path, f"mnt_id:\t{mount}\n")) is everywhere


def test_a_kernel_that_does_not_name_the_mount_is_not_believed(tmp_path: Path) -> None:
    assert not locks_everywhere(7, proc_of(tmp_path, ""))


@pytest.mark.parametrize(("system", "everywhere"), [("darwin", True), ("linux", False)])
def test_without_a_table_of_mounts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, everywhere: bool
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert locks_everywhere(7, tmp_path) is everywhere


def test_the_folder_of_the_tests_is_found_in_the_real_table(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout
        if kind.strip() not in ("ext2/ext3", "xfs", "btrfs", "tmpfs", "overlayfs"):
            pytest.skip(f"a temporary folder on {kind}")
        assert locks_everywhere(file.fileno())


@contextmanager
def held_until(lock: Path, end: threading.Event) -> Iterator[None]:
    """The lock is held by another thread, for flock another holder."""
    begun = threading.Event()

    def hold() -> None:
        with locked(lock, "students/small"):
            begun.set()
            end.wait(600)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(600)
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
    with held_until(lock, end), locked_when_free(lock, "students/small", 600, reporter):
        assert reporter.notes[0].startswith(f"waiting: students/small is being written by process {os.getpid()} on ")


def test_the_time_in_which_the_waiting_process_is_paused_does_not_count(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the holder may have been paused, as on a machine that stood still."""
    end, seconds, naps = threading.Event(), count(step=1000), list[float]()

    def nap(pause: float) -> None:
        naps.append(pause)
        if len(naps) == 3:
            end.set()
        time.sleep(pause)

    monkeypatch.setattr(locking, "time", SimpleNamespace(sleep=nap, monotonic=lambda: next(seconds)))
    with held_until(lock, end), locked(lock, "students/small", patience=600):
        assert len(naps) >= 3


def test_who_waits_too_long_is_told_who_still_writes(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "PATIENCE_SECONDS", 0.01)
    with held_until(lock, threading.Event()):
        for seconds, hint in ((0.2, "wait for it, or"), (0.0, "use `wait` 30m, or wait for it")):
            with pytest.raises(BusyError, match="is being written by process") as raised:
                locked_when_free(lock, "students/small", seconds, Listener()).__enter__()
            assert str(raised.value.hint).startswith(hint)


def test_who_no_longer_wants_the_lock_stops_waiting(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locking, "PATIENCE_SECONDS", 0.01)
    reporter = Listener()
    with held_until(lock, threading.Event()):
        for wanted in (lambda: not reporter.notes, lambda: False):
            with pytest.raises(BusyError, match="is being written by process"):
                locked_when_free(lock, "students/small", 600, reporter, wanted).__enter__()
        assert len(reporter.notes) == 1
