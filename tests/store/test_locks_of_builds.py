"""Two builds of the same artifact exclude each other, and a dead one holds no lock."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest
from building import KIND, asked, content, impatient, make

from sentcompress.errors import BusyError, InputError
from sentcompress.store import WorkDirectory, is_being_written


def held_elsewhere(work: WorkDirectory, then: str = "time.sleep(1000)") -> subprocess.Popen[str]:
    """Another process that builds `main` and, once it has begun, does `then`."""
    code = f"""
import multiprocessing, os, sys, time
from sentcompress.store import Request, WorkDirectory
request = Request({KIND!r}, "main", "teacher-embed", {{"seed": 0}}, {{"sentences/main": "d1"}})
with WorkDirectory({str(work.path)!r}).build(request) as build:
    with build.write("a.txt") as path:
        path.write_text("from the dead")
    {then}
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    while not (work.path / KIND / ".main.partial" / "a.txt").exists():
        assert holder.poll() is None
        time.sleep(0.02)
    return holder


def test_a_second_writer_is_told_who_the_first_is_and_a_dead_one_s_lock_is_free(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch)
    holder = held_elsewhere(work)
    try:
        assert is_being_written(work.path / KIND / "main")
        with pytest.raises(BusyError, match=f"being written by process {holder.pid} on ") as raised:
            make(work)
        assert raised.value.hint
        assert content(make(work, "other")) == {"one"}
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert not is_being_written(work.path / KIND / "main")
    assert content(make(work)) == {"from the dead", "one"}


def test_workers_that_outlive_a_killed_writer_do_not_keep_its_lock(work: WorkDirectory) -> None:
    then = "child = os.fork() or time.sleep(1000); print(child, flush=True); time.sleep(1000)"
    holder = held_elsewhere(work, then)
    assert holder.stdout
    worker = int(holder.stdout.readline())
    try:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        os.kill(worker, 0)  # it is still there
        assert content(make(work)) == {"from the dead", "one"}
    finally:
        os.kill(worker, signal.SIGKILL)


def test_two_builds_in_one_process_exclude_each_other(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    with work.build(asked()) as build:
        impatient(monkeypatch)
        with pytest.raises(BusyError), work.build(asked()):
            pass
        build.finish({})


def test_who_waits_for_a_build_of_the_same_gets_its_result(work: WorkDirectory) -> None:
    holder = held_elsewhere(work, "time.sleep(2.5); build.finish({})")
    made = make(work.waiting(600))
    assert content(made) == {"from the dead"}
    assert holder.wait() == 0


def test_a_look_at_the_lock_does_not_disturb_a_writer_that_begins(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("sentcompress.store.artifacts.PATIENCE_SECONDS", 600.0)  # the look may last, on a busy machine
    monkeypatch.setattr("sentcompress.store.locking.PATIENCE_SECONDS", 600.0)
    make(work, data=0)
    lock = work.path / KIND / ".main.lock"
    with lock.open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        child = multiprocessing.get_context("fork").Process(target=lambda: make(work, text="two", data=1))
        child.start()
        time.sleep(0.2)
        fcntl.flock(looking, fcntl.LOCK_UN)
    child.join(600)
    assert child.exitcode == 0


def test_a_lock_with_nonsense_in_it_is_still_a_lock(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    with work.build(asked()):
        (work.path / KIND / ".main.lock").write_text("nonsense")
        impatient(monkeypatch)
        with pytest.raises(BusyError, match="another process"), work.build(asked()):
            pass


def test_a_file_system_without_locks_is_named(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(InputError, match="no file locks"):
        make(work)
