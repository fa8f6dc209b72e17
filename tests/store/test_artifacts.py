"""The artifact store: names, freshness, resume, locks, and a crash at every step of a build."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from listening import Listener

from sentcompress.errors import BusyError, DamagedError, InputError, MissingArtifactError, UsageError
from sentcompress.progress import Overview
from sentcompress.signals import StoppedError
from sentcompress.store import (
    MANIFEST,
    REQUEST,
    SCAFFOLD,
    Artifact,
    Request,
    WorkDirectory,
    atomic,
    check_name,
    is_being_written,
    name_part,
    read_request,
)
from sentcompress.store.manifests import sealed

KIND = "teacher-vectors"


def asked(name: str = "main", data: int = 0, **parameters: Any) -> Request:
    """A request; `data` stands for the contents of its input."""
    return Request(KIND, name, "teacher-embed", parameters or {"seed": 0}, {"sentences/main": f"d{data + 1}"})


def make(
    work: WorkDirectory,
    name: str = "main",
    text: str = "one",
    *,
    files: tuple[str, ...] = ("a.txt", "model/b.txt"),
    force: bool = False,
    reporter: Listener | None = None,
    **parameters: Any,
) -> Artifact:
    with work.build(asked(name, **parameters), force=force, reporter=reporter or Listener()) as build:
        if build.fresh:
            return build.fresh
        for file in files:
            if not build.has(file):
                with build.write(file) as path:
                    path.write_text(text, encoding="utf-8")
        return build.finish({"text": text})


def interrupt(
    work: WorkDirectory, name: str = "main", files: tuple[str, ...] = ("a.txt",), text: str = "half", **parameters: Any
) -> Path:
    """A build that stops after some of its files; its partial folder."""
    try:
        with work.build(asked(name, **parameters)) as build:
            for file in files:
                with build.write(file) as path:
                    path.write_text(text, encoding="utf-8")
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        return build.path


def content(artifact: Artifact) -> set[str]:
    return {(artifact.path / name).read_text(encoding="utf-8") for name in artifact.manifest["files"]}


def test_a_build_leaves_data_request_and_manifest_and_nothing_hidden_but_the_lock(work: WorkDirectory) -> None:
    artifact = make(work)
    assert artifact.path == work.path / KIND / "main"
    found = {p.relative_to(artifact.path).as_posix() for p in artifact.path.rglob("*") if p.is_file()}
    assert found == {"a.txt", "model/b.txt", REQUEST, MANIFEST}
    assert sorted(p.name for p in artifact.path.parent.iterdir()) == [".main.lock", "main"]
    assert artifact.reference == f"{KIND}/main"
    assert artifact.facts == {"text": "one"}
    assert artifact.input_of_kind("sentences") == "main"
    assert artifact.input_of_kind("students") is None


def test_the_same_request_is_fresh_and_force_does_it_again(work: WorkDirectory) -> None:
    first = make(work)
    hearing = Listener()
    again = make(work, text="two", reporter=hearing)
    assert again.digest == first.digest
    assert hearing.heard == [f"teacher-embed: {KIND}/main is up to date, skipped (`force` to rerun)"]
    forced = make(work, text="two", force=True)
    assert content(forced) == {"two"}
    assert forced.fingerprint == first.fingerprint
    assert forced.digest != first.digest


def test_other_inputs_replace_the_artifact(work: WorkDirectory) -> None:
    make(work, data=0)
    assert content(make(work, text="two", data=1)) == {"two"}
    assert work.names(KIND) == ["main"]


def test_other_options_replace_nothing_without_force(work: WorkDirectory) -> None:
    made = make(work, lr=1e-4, text="one")
    with pytest.raises(UsageError, match=r"already exists with different options \(lr: 0.0001, now 0.0003\)"):
        make(work, lr=3e-4)
    with pytest.raises(UsageError, match=r"lr: 0\.0001, now not given; seed: not given, now 0"):
        make(work)
    assert content(work.get(KIND, "main")) == content(made) == {"one"}
    assert content(make(work, lr=3e-4, text="two", force=True)) == {"two"}
    assert content(make(work, "other", lr=1e-4, text="three")) == {"three"}


def test_an_unfinished_build_with_other_options_is_kept_without_force(work: WorkDirectory) -> None:
    interrupt(work, text="hours of training", lr=1e-4)
    with pytest.raises(UsageError, match="an unfinished teacher-vectors/main already exists with different options"):
        make(work, lr=3e-4)
    assert content(make(work, text="more", lr=1e-4)) == {"hours of training", "more"}


def test_an_artifact_of_an_older_version_is_replaced(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    make(work, lr=1e-4)
    monkeypatch.setattr("sentcompress.store.request.version_of", lambda command: 99)
    assert content(make(work, rate=1e-4, text="new")) == {"new"}


def test_the_fingerprint_knows_parameters_inputs_kind_and_command_but_no_name() -> None:
    base = asked("a").fingerprint
    assert asked("b").fingerprint == base
    others = [
        asked("a", seed=1),
        Request(KIND, "a", "teacher-embed", {"seed": 0}, {"sentences/main": "d2"}),
        Request(KIND, "a", "merge", {"seed": 0}, {"sentences/main": "d1"}),
        Request("students", "a", "teacher-embed", {"seed": 0}, {"sentences/main": "d1"}),
    ]
    assert len({base, *(other.fingerprint for other in others)}) == 5


def test_the_fingerprint_does_not_depend_on_the_order_of_parameters() -> None:
    assert asked("a", x=1, y=[2]).fingerprint == asked("a", y=[2], x=1).fingerprint


def test_the_digest_leaves_out_logs_wherever_they_are_but_lists_them(work: WorkDirectory) -> None:
    plain = make(work, "plain")
    logged = make(work, "logged", files=("a.txt", "model/b.txt", "log.jsonl", "model/log.jsonl"))
    assert plain.digest == logged.digest
    assert "model/log.jsonl" in logged.manifest["files"]


def test_the_digest_counts_a_nested_file_that_is_called_like_the_manifest(work: WorkDirectory) -> None:
    nested = make(work, files=("a.txt", f"model/{MANIFEST}"))
    assert f"model/{MANIFEST}" in nested.manifest["files"]


def test_the_digest_knows_names_of_files(work: WorkDirectory) -> None:
    assert make(work, "x", files=("a.txt",)).digest != make(work, "y", files=("b.txt",)).digest


def test_a_file_has_no_name_until_it_is_complete(work: WorkDirectory) -> None:
    with work.build(asked()) as build:
        with build.write("good.txt") as path:
            path.write_text("good")
            assert not build.has("good.txt")
        with pytest.raises(KeyError), build.write("bad.txt") as path:
            raise KeyError(path.write_text("half"))
        assert sorted(p.name for p in build.path.iterdir()) == ["good.txt", REQUEST]


def test_a_folder_is_written_whole_and_replaces_an_older_one(work: WorkDirectory) -> None:
    with work.build(asked()) as build:
        for text in ("old", "new"):
            with build.write("model") as folder:
                folder.mkdir()
                (folder / f"{text}.txt").write_text(text)
        artifact = build.finish({})
    assert list(artifact.manifest["files"]) == ["model/new.txt"]


def test_leftovers_of_a_killed_write_do_not_end_up_in_the_artifact(work: WorkDirectory) -> None:
    with work.build(asked()) as build:
        (build.path / ".a.txt.tmp").write_text("half")
        (build.path / ".model.tmp").mkdir()
        (build.path / ".model.tmp" / "weights").write_text("half")
        artifact = build.finish({})
    assert artifact.manifest["files"] == {}
    assert not list(artifact.path.rglob(".*"))


def test_a_signal_after_the_artifact_is_in_place_is_told_as_one(work: WorkDirectory) -> None:
    def stopped() -> None:
        with work.build(asked()) as build:
            (build.path / "a.txt").write_text("one")
            build.finish({})
            raise StoppedError(signal.SIGTERM)

    with pytest.raises(StoppedError):
        stopped()
    assert work.get(KIND, "main").damage() is None


def test_a_stage_that_fails_before_it_made_anything_leaves_nothing(work: WorkDirectory) -> None:
    with pytest.raises(InputError), work.build(asked()):
        raise InputError("the vectors are no good")
    assert work.unfinished(KIND) == []
    assert work.names(KIND) == []


def test_an_unfinished_build_is_resumed_for_the_same_request_only(work: WorkDirectory) -> None:
    def stop() -> None:
        interrupt(work, text="from the first run", data=0)

    stop()
    assert work.unfinished(KIND) == ["main"]
    assert work.names(KIND) == []
    hearing = Listener()
    artifact = make(work, text="second", reporter=Overview(hearing), data=0)
    assert content(artifact) == {"from the first run", "second"}
    assert "resuming the unfinished" in hearing.heard[0]

    shutil.rmtree(artifact.path)
    stop()
    hearing = Listener()
    assert content(make(work, text="second", reporter=Overview(hearing), data=1)) == {"second"}
    assert "main (its parameters or inputs differ)" in hearing.heard[0]

    stop_forced = Listener()
    shutil.rmtree(artifact.path)
    stop()
    assert content(make(work, text="second", force=True, reporter=stop_forced, data=0)) == {"second"}
    assert "main (`force`)" in stop_forced.heard[0]


def interrupt_forced(work: WorkDirectory) -> None:
    def stop() -> None:
        with work.build(asked(), force=True) as build:
            with build.write("a.txt") as path:
                path.write_text("forced")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()


def test_a_forced_build_that_was_interrupted_goes_on_when_it_is_forced_again(work: WorkDirectory) -> None:
    make(work)
    interrupt_forced(work)
    hearing = Listener()
    assert content(make(work, text="two", force=True, reporter=hearing)) == {"forced", "two"}
    assert "resuming the unfinished" in hearing.heard[0]


def test_what_an_interrupted_force_left_is_dropped_where_the_finished_one_is_taken(work: WorkDirectory) -> None:
    make(work)
    interrupt_forced(work)
    hearing = Listener()
    assert content(make(work, reporter=hearing)) == {"one"}
    assert [line for line in hearing.heard if "removed the unfinished rebuild of an interrupted `force`" in line]
    assert sorted(p.name for p in (work.path / KIND).iterdir()) == [".main.lock", "main"]


def test_what_was_begun_with_other_parameters_is_not_dropped_by_a_fresh_one(work: WorkDirectory) -> None:
    make(work, data=0)
    interrupt(work, data=1)
    make(work, data=0)
    assert work.unfinished(KIND) == ["main"]


def test_a_new_request_keeps_the_finished_artifact_until_it_is_done(work: WorkDirectory) -> None:
    make(work, data=0)
    interrupt(work, data=1)
    assert content(work.get(KIND, "main")) == {"one"}
    assert work.unfinished(KIND) == ["main"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '"text"', "\xff"])
def test_a_partial_with_a_damaged_request_is_dropped(work: WorkDirectory, damage: str) -> None:
    partial = work.path / KIND / ".main.partial"
    partial.mkdir(parents=True)
    (partial / "a.txt").write_text("unknown origin")
    (partial / REQUEST).write_bytes(damage.encode("latin-1"))
    assert content(make(work)) == {"one"}


@pytest.mark.parametrize("name", [MANIFEST, REQUEST])
def test_an_artifact_with_a_folder_in_place_of_a_document_is_rebuilt(work: WorkDirectory, name: str) -> None:
    made = make(work)
    (made.path / name).unlink()
    (made.path / name).mkdir()
    for force in (True, False):  # the second time, nothing of the first is in the way
        assert content(make(work, force=force)) == {"one"}


def test_a_drop_that_is_killed_half_way_is_not_resumed(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    partial = interrupt(work, files=("a.txt", "model/b.txt", "model/c.txt"), data=0)

    def killed(path: Path) -> None:
        (path / "model" / "c.txt").unlink()
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(SystemExit):
            make(work, data=1)
    assert (partial / "model").is_dir()
    assert content(make(work, text="second", data=0)) == {"second"}


# Crashes: a forked child dies at its n-th touch of the file system; the parent looks at what is left.
STEPS = [(os, "mkdir"), (os, "open"), (os, "fsync"), (os, "rename"), (os, "replace"), (os, "unlink"), (os, "rmdir")]


@contextmanager
def dying_at(step: int) -> Iterator[None]:
    count = 0

    def dying(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            if count == step:
                os._exit(9)
            count += 1
            return function(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module, name in STEPS:
            patch.setattr(module, name, dying(getattr(module, name)))
        yield


def in_a_child(work: Callable[[], object]) -> int:
    """The exit status of a forked process that does `work`: 0 when it got to its end."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def crash_points(work: WorkDirectory, prepare: Callable[[], object], act: Callable[[], object]) -> Iterator[int]:
    """Kill `act` at each of its steps in turn, on a work directory that `prepare` made; stop when it survives."""
    for step in range(1000):
        shutil.rmtree(work.path, ignore_errors=True)
        prepare()

        def dying(step: int = step) -> None:
            with dying_at(step):
                act()

        status = in_a_child(dying)
        assert status in (0, 9)
        yield step
        if status == 0:
            assert step > 0, "it was never killed"
            return
    pytest.fail("it never came to an end")


def test_a_crash_at_any_step_of_a_first_build_leaves_nothing_or_all(work: WorkDirectory) -> None:
    for step in crash_points(work, lambda: None, lambda: make(work)):
        found = WorkDirectory(work.path).find(KIND, "main")
        assert found is None or content(found) == {"one"}, step
        assert make(work).facts == {"text": "one"}
        assert content(work.get(KIND)) == {"one"}
        assert work.unfinished(KIND) == []
    assert step > 20


def test_a_crash_at_any_step_of_a_replacement_leaves_the_old_or_the_new(work: WorkDirectory) -> None:
    new = 0
    for step in crash_points(work, lambda: make(work, data=0), lambda: make(work, text="two", data=1)):
        found = WorkDirectory(work.path).get(KIND, "main")
        assert content(found) in ({"one"}, {"two"}), step
        assert found.damage(contents=True) is None
        new += content(found) == {"two"}
        assert content(make(work, text="two", data=1)) == {"two"}
        assert sorted(p.name for p in (work.path / KIND).iterdir()) == [".main.lock", "main"], step
    assert 2 < new < step


def test_a_crash_during_the_recovery_from_a_crash_is_recovered_from(work: WorkDirectory) -> None:
    def half_swapped() -> None:
        make(work, data=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(atomic, "swap", lambda partial, target: target.rename(atomic.beside(target, "old")))
            with pytest.raises(FileNotFoundError):
                make(work, text="two", data=1)

    for step in crash_points(work, half_swapped, lambda: work.find(KIND, "main")):
        assert content(WorkDirectory(work.path).get(KIND)) == {"two"}, step
        make(work, text="two", data=1)
        assert sorted(p.name for p in (work.path / KIND).iterdir()) == [".main.lock", "main"]


def test_a_crash_while_another_request_s_partial_is_dropped(work: WorkDirectory) -> None:
    def half_made() -> None:
        interrupt(work, files=("a.txt", "model/b.txt"), data=0)

    for step in crash_points(work, half_made, lambda: make(work, data=1)):
        assert content(make(work, data=1)) == {"one"}, step


def test_the_old_one_comes_back_when_the_new_one_is_gone(work: WorkDirectory) -> None:
    target = make(work).path
    target.rename(atomic.beside(target, "old"))
    assert work.names(KIND) == ["main"]
    assert content(work.get(KIND)) == {"one"}


def test_a_reader_without_the_right_to_write_reads_an_interrupted_swap_as_it_stands(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = make(work).path
    target.rename(atomic.beside(target, "partial"))
    before = sorted(p.name for p in target.parent.iterdir())
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    found = work.get(KIND)
    assert content(found) == {"one"}
    assert found.name == "main"
    assert sorted(p.name for p in target.parent.iterdir()) == before


def test_a_reader_waits_for_a_living_writer_between_two_renames(work: WorkDirectory) -> None:
    make(work)
    started, go_on = multiprocessing.Event(), multiprocessing.Event()

    def swap_slowly() -> None:
        rename = Path.rename

        def slow(path: Path, target: Path) -> Path:
            moved = rename(path, target)
            if path.name == "main":
                started.set()
                go_on.wait(10)
            return moved

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "rename", slow)
            make(work, text="two", data=1)

    writer = multiprocessing.get_context("fork").Process(target=swap_slowly)
    writer.start()
    assert started.wait(10)
    assert not (work.path / KIND / "main").exists()
    fork = multiprocessing.get_context("fork")
    reader = fork.Process(target=lambda: content(work.get(KIND)) == {"two"} or os._exit(5))
    reader.start()
    time.sleep(0.2)
    assert reader.is_alive()
    go_on.set()
    reader.join(10)
    writer.join(10)
    assert (reader.exitcode, writer.exitcode) == (0, 0)


# Locks


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for readers that look at a lock."""
    for module in ("artifacts", "locking"):
        monkeypatch.setattr(f"sentcompress.store.{module}.PATIENCE_SECONDS", 0.0)


def held_elsewhere(work: WorkDirectory, then: str = "time.sleep(60)") -> subprocess.Popen[str]:
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
    deadline = time.monotonic() + 20
    while not (work.path / KIND / ".main.partial" / "a.txt").exists():
        assert time.monotonic() < deadline
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
    then = "child = os.fork() or time.sleep(60); print(child, flush=True); time.sleep(60)"
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
    made = make(work.waiting(30))
    assert content(made) == {"from the dead"}
    assert holder.wait() == 0


def test_a_look_at_the_lock_does_not_disturb_a_writer_that_begins(work: WorkDirectory) -> None:
    import fcntl

    make(work, data=0)
    lock = work.path / KIND / ".main.lock"
    with lock.open() as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)
        child = multiprocessing.get_context("fork").Process(target=lambda: make(work, text="two", data=1))
        child.start()
        time.sleep(0.2)
        fcntl.flock(looking, fcntl.LOCK_UN)
    child.join(10)
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


# Names and damage


def test_names_are_ordered_by_time_and_pass_over_what_is_hidden_or_unfinished(work: WorkDirectory) -> None:
    for name in ("zulu", "alpha", "v1.2", "Größe-名前"):
        make(work, name)
    folder = work.path / KIND
    (folder / ".gone.lock").touch()
    (folder / ".DS_Store").touch()
    (folder / "a stray file").touch()
    (folder / "no manifest").mkdir()
    interrupt(work, "half")
    assert work.names(KIND) == ["zulu", "alpha", "v1.2", "Größe-名前"]
    assert work.get(KIND).name == "Größe-名前"
    assert work.unfinished(KIND) == ["half"]


def test_a_copied_folder_is_an_artifact_of_its_own_name(work: WorkDirectory) -> None:
    made = make(work)
    shutil.copytree(made.path, made.path.with_name("copy"))
    assert set(work.names(KIND)) == {"main", "copy"}
    assert work.get(KIND, "copy").reference == f"{KIND}/copy"
    assert work.get(KIND, "copy").digest == made.digest


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "../up", "a\\b", "a\nb", "a\0b", "x" * 201, "ü" * 150, "\udcff"]
)
def test_names_that_cannot_be_a_folder_s_are_refused(work: WorkDirectory, name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name"):
        check_name(name)
    with pytest.raises(InputError, match="cannot be the name"):
        make(work, name)
    assert work.find(KIND, name) is None
    assert not work.path.exists()


def test_a_long_name_of_many_bytes_that_is_allowed_can_be_built(work: WorkDirectory) -> None:
    assert make(work, "ü" * 100).name == "ü" * 100


def test_a_missing_artifact_names_the_command_and_a_near_miss_the_name(work: WorkDirectory) -> None:
    with pytest.raises(MissingArtifactError, match="no teacher vectors in ") as raised:
        work.get(KIND)
    assert raised.value.hint == f"run: sentcompress teacher-embed --work {work.path}"
    with pytest.raises(MissingArtifactError) as raised:
        work.get("sentences", "main")
    assert raised.value.hint == f"run: sentcompress augment FILE --work {work.path}"
    with pytest.raises(MissingArtifactError) as raised:
        work.get("students")
    assert raised.value.hint == f"run: sentcompress compress DOCUMENTS --work {work.path}"
    make(work, "captions")
    with pytest.raises(MissingArtifactError) as raised:
        work.get("students")
    assert raised.value.hint == f"run: sentcompress distill --work {work.path}"
    with pytest.raises(MissingArtifactError, match="named 'caption'") as raised:
        work.get(KIND, "caption")
    assert raised.value.hint == "did you mean captions?"


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b"{}", b"\xff\xfe", b'{"kind": 1}'])
def test_a_damaged_manifest_is_said_passed_over_and_made_anew(work: WorkDirectory, damage: bytes) -> None:
    make(work, "good")
    broken = make(work, "broken")
    (broken.path / MANIFEST).write_bytes(damage)
    with pytest.raises(DamagedError, match="damaged") as raised:
        work.find(KIND, "broken")
    assert str(broken.path) in str(raised.value.hint)
    assert work.names(KIND) == ["good"]
    assert [name for name in ("good", "broken", "none", "../good") if work.has(KIND, name)] == ["good"]
    assert list(work.damaged(KIND)) == ["broken"]
    assert work.get(KIND).name == "good"
    hearing = Listener()
    assert content(make(work, "broken", reporter=hearing)) == {"one"}
    assert "it will be rebuilt" in hearing.heard[0]
    assert work.damaged(KIND) == {}


def test_an_artifact_that_lost_a_file_is_refused_and_made_anew(work: WorkDirectory) -> None:
    artifact = make(work)
    (artifact.path / "a.txt").unlink()
    with pytest.raises(DamagedError, match="txt is missing"):
        work.get(KIND)
    assert content(make(work)) == {"one"}
    (artifact.path / "a.txt").write_text("longer than it was")
    with pytest.raises(DamagedError, match=r"a\.txt has 18 bytes, expected 3"):
        work.get(KIND)
    hearing = Listener()
    assert content(make(work, reporter=hearing)) == {"one"}
    assert "damaged (a.txt has 18 bytes" in hearing.heard[0]


def test_damage_that_leaves_the_size_is_seen_when_contents_are_read(work: WorkDirectory) -> None:
    artifact = make(work)
    (artifact.path / "a.txt").write_text("eno")
    assert work.get(KIND).damage() is None
    assert work.get(KIND).damage(contents=True) == "a.txt was changed: its SHA-256 differs"
    with pytest.raises(DamagedError, match=r"a\.txt was changed") as raised:
        work.get(KIND).require_contents()
    assert raised.value.hint == f"run: sentcompress teacher-embed --work {work.path} --force"


def test_a_manifest_is_written_without_numbers_that_json_does_not_have(work: WorkDirectory) -> None:
    with work.build(asked()) as build, build.write("a.txt") as path:
        path.write_text("one")
    with work.build(asked()) as build:
        artifact = build.finish({"loss": float("nan"), "scores": [1.5, float("inf")]})
    assert artifact.facts == {"loss": None, "scores": [1.5, None]}
    assert work.get(KIND).facts == artifact.facts


def reseal(folder: Path, **changes: Any) -> None:
    """Change a manifest as somebody does who knows how it is sealed."""
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(sealed({**manifest, **changes})))


def test_any_changed_bit_of_a_manifest_is_seen(work: WorkDirectory) -> None:
    artifact = make(work)
    whole = (artifact.path / MANIFEST).read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        (artifact.path / MANIFEST).write_bytes(bytes(changed))
        try:
            read = work.find(KIND, "main")
        except DamagedError:
            continue
        # White space, and other ways to write the same text, mean the same.
        assert read is not None
        assert read.manifest == artifact.manifest, place


@pytest.mark.parametrize(
    "changes",
    [
        {"finished": "yesterday"},
        {"finished": "2026-01-01T00:00:00"},
        {"inputs": {"unknown/x": "1"}},
        {"inputs": {"file:\ud800": "1"}},
        {"inputs": {"file:/" + "x" * 300: "1"}},
        {"inputs": {"file:/a\0b": "1"}},
        {"files": {"a.txt": {"bytes": 10**400, "sha256": "0"}}},
        {"files": {"a.txt": {"bytes": -1, "sha256": "0"}}},
        {"files": {"x" * 300: {"bytes": 3, "sha256": "0"}}},
        {"files": {"a.txt": None}},
        {"files": {"a.txt": {"bytes": "3", "sha256": "0"}}},
        {"files": {"../a.txt": {"bytes": 3, "sha256": "0"}}},
        {"files": {"/a.txt": {"bytes": 3, "sha256": "0"}}},
        {"inputs": {"sentences/main": None}},
        {"libraries": {"torch": 2}},
        {"facts": []},
        {"name": 1},
        {"version": "1"},
    ],
)
def test_a_manifest_with_odd_values_costs_its_own_artifact_only(work: WorkDirectory, changes: dict[str, Any]) -> None:
    make(work, "good")
    reseal(make(work, "odd").path, **changes)
    assert work.names(KIND) == ["good"]
    assert list(work.damaged(KIND)) == ["odd"]
    assert content(make(work, "odd")) == {"one"}


def test_an_artifact_of_a_wrong_clock_is_the_oldest_and_not_the_newest_for_ever(work: WorkDirectory) -> None:
    reseal(make(work, "future").path, finished="2099-01-01T00:00:00+00:00")
    make(work, "first")
    make(work, "second")
    assert work.names(KIND) == ["future", "first", "second"]
    assert work.get(KIND, "future").from_the_future
    soon = datetime.now(UTC) + timedelta(minutes=5)  # another machine's clock may be that far ahead
    reseal(work.get(KIND, "first").path, finished=soon.isoformat())
    assert work.names(KIND) == ["future", "second", "first"]


# Scaffolding: what only the building needs


def build_with_scaffold(work: WorkDirectory, text: str = "one", **named: Any) -> Artifact:
    with work.build(asked(), **named) as build:
        if build.fresh:
            return build.fresh
        for name in (f"{SCAFFOLD}/state/1.pt", f"{SCAFFOLD}/state/2.pt", "a.txt"):
            if not build.has(name):
                with build.write(name) as path:
                    path.write_text(text)
        # Whoever goes on needs all of it until the manifest is there.
        assert (build.path / SCAFFOLD / "state" / "1.pt").is_file()
        assert (build.path / SCAFFOLD / "state" / "2.pt").is_file()
        return build.finish({})


def test_scaffolding_is_no_part_of_an_artifact(work: WorkDirectory) -> None:
    artifact = build_with_scaffold(work)
    assert list(artifact.manifest["files"]) == ["a.txt"]
    assert sorted(path.name for path in artifact.path.iterdir()) == ["a.txt", MANIFEST, REQUEST]


def test_a_crash_while_scaffolding_is_removed_leaves_a_complete_artifact(work: WorkDirectory) -> None:
    wanted = build_with_scaffold(WorkDirectory(work.path.with_name("other"))).digest
    for step in crash_points(work, lambda: None, lambda: build_with_scaffold(work)):
        assert build_with_scaffold(work).digest == wanted, step
        assert sorted(p.name for p in (work.path / KIND).iterdir()) == [".main.lock", "main"], step
        assert not (work.path / KIND / "main" / SCAFFOLD).exists(), step


# Links, which a work directory from elsewhere may hold


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_link_in_place_of_a_lock_is_refused_and_its_target_kept(
    work: WorkDirectory, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (work.path / KIND).mkdir(parents=True)
    link(victim, work.path / KIND / ".main.lock")
    with pytest.raises(InputError, match="not a lock file of sentcompress"):
        make(work)
    assert victim.read_text() == "precious"
    assert work.names(KIND) == []
    # Readers take the lock to finish an interrupted swap.
    (work.path / KIND / ".main.old").mkdir()
    assert work.find(KIND, "main") is None
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("place", ["dangling", "folder"])
def test_a_lock_that_is_no_file_is_refused(work: WorkDirectory, tmp_path: Path, place: str) -> None:
    lock = work.path / KIND / ".main.lock"
    lock.parent.mkdir(parents=True)
    if place == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(tmp_path / "new")
    with pytest.raises(InputError, match="not a lock file of sentcompress"):
        make(work)
    assert not (tmp_path / "new").exists()


def test_a_partial_that_is_or_holds_a_link_is_dropped_and_nothing_else(work: WorkDirectory, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(interrupt(work, files=("a.txt",)), outside)
    partial = work.path / KIND / ".main.partial"
    shutil.rmtree(partial)
    before = {path: path.read_bytes() for path in outside.rglob("*")}
    for prepare in (
        lambda: partial.symlink_to(outside),
        lambda: link_inside(outside, partial),
        lambda: pipe_inside(outside, partial),
    ):
        prepare()
        hearing = Listener()
        assert content(make(work, reporter=hearing)) == {"one"}
        assert "contains links" in hearing.heard[0]
        assert {path: path.read_bytes() for path in outside.rglob("*")} == before
        shutil.rmtree(work.path / KIND / "main")


def test_a_partial_with_hard_links_is_neither_written_to_nor_dropped(work: WorkDirectory, tmp_path: Path) -> None:
    """As after `cp -al work backup`."""
    partial, backup = interrupt(work, files=("a.txt",)), tmp_path / "backup"
    shutil.copytree(partial, backup, copy_function=os.link)
    before = {path: path.read_bytes() for path in (*backup.rglob("*"), *partial.rglob("*")) if path.is_file()}
    with pytest.raises(InputError, match=r"the unfinished .* has hard links") as raised:
        make(work)
    assert "cp -a" in str(raised.value.hint)
    assert {path: path.read_bytes() for path in before} == before
    assert content(make(work, force=True)) == {"one"}
    assert {path: path.read_bytes() for path in backup.rglob("*") if path.is_file()} == {
        path: text for path, text in before.items() if path.is_relative_to(backup)
    }


def link_inside(outside: Path, partial: Path) -> None:
    partial.mkdir()
    shutil.copy(outside / REQUEST, partial / REQUEST)
    (partial / SCAFFOLD).symlink_to(outside)


def pipe_inside(outside: Path, partial: Path) -> None:
    partial.mkdir()
    shutil.copy(outside / REQUEST, partial / REQUEST)
    os.mkfifo(partial / "a.txt")


@pytest.mark.parametrize("suffix", ["partial", "old"])
def test_a_linked_leftover_of_a_swap_is_not_taken_for_one(work: WorkDirectory, tmp_path: Path, suffix: str) -> None:
    make(work)
    outside = tmp_path / "outside"
    (work.path / KIND / "main").rename(outside)
    (outside / SCAFFOLD).mkdir()
    link = work.path / KIND / f".main.{suffix}"
    link.symlink_to(outside)
    assert work.find(KIND, "main") is None
    assert (outside / SCAFFOLD).is_dir()
    assert link.is_symlink()


def test_a_dangling_link_in_place_of_an_artifact_is_replaced(work: WorkDirectory, tmp_path: Path) -> None:
    (work.path / KIND).mkdir(parents=True)
    (work.path / KIND / "main").symlink_to(tmp_path / "nowhere")
    assert work.names(KIND) == []
    assert content(make(work)) == {"one"}
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("place", ["main/manifest.json", ".main.lock", ".main.partial/request.json"])
def test_a_pipe_makes_nobody_wait(work: WorkDirectory, place: str) -> None:
    make(work, "good")
    pipe = work.path / KIND / place
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    assert work.names(KIND) == ["good"]
    assert not is_being_written(work.path / KIND / "main")
    assert read_request(work.path / KIND / ".main.partial") == {}


def test_a_full_disk_is_told_with_the_file_that_did_not_fit(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space") as raised, atomic.written(tmp_path / "vectors.npy"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert raised.value.filename == str(tmp_path / "vectors.npy")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="Input/output") as raised, atomic.written(tmp_path / "vectors.npy"):
        raise OSError(errno.EIO, "Input/output error")  # perhaps of a file that was read
    assert raised.value.filename is None


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_device_is_not_replaced_by_a_file(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    if kind == "pipe":
        os.mkfifo(target)
    else:
        target = Path("/dev/null")
    before = target.stat().st_mode
    with pytest.raises(InputError, match="is a device or a pipe"), atomic.written(target) as path:
        path.write_text("x")
    assert target.stat().st_mode == before


@pytest.mark.parametrize("place", ["main", ".main.old"])
def test_an_artifact_that_is_a_link_is_replaced_and_what_it_points_to_kept(
    work: WorkDirectory, tmp_path: Path, place: str
) -> None:
    make(work)
    outside = tmp_path / "outside"
    (work.path / KIND / "main").rename(outside)
    (work.path / KIND / place).symlink_to(outside)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    assert content(make(work, text="two", data=1)) == {"two"}
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
    assert sorted(p.name for p in (work.path / KIND).iterdir()) == [".main.lock", "main"]
    assert not (work.path / KIND / "main").is_symlink()


def test_a_replaced_folder_that_cannot_be_removed_yet_is_removed_later(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on NFS, where a removed file that is still open keeps its folder."""
    folder = work.path / KIND
    make(work)
    make(work, "main.old-0123abcd")  # no leftover, whatever its name
    real = shutil.rmtree

    def rmtree(path: Path) -> None:
        if ".main.old" in path.name:
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", rmtree)
        for data in (1, 2):
            make(work, text=f"of {data}", data=data)
        assert len([path for path in folder.iterdir() if path.name.startswith(".main.old-") and path.is_dir()]) == 2
        assert not (folder / ".main.old").exists()
    assert content(work.get(KIND, "main")) == {"of 2"}
    assert work.names(KIND) == ["main.old-0123abcd", "main"]
    make(work, text="of 3", data=3)
    assert sorted(p.name for p in folder.iterdir()) == [
        *(".main.lock", ".main.old-0123abcd.lock"),
        *("main", "main.old-0123abcd"),
    ]


# Places


def test_a_work_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "work"
    path.write_text("notes")
    for use in (lambda work: make(work), lambda work: work.get(KIND), lambda work: work.names(KIND)):
        with pytest.raises(InputError, match="is a file"):
            use(WorkDirectory(path))
    with pytest.raises(InputError, match="a file is in the way"):
        make(WorkDirectory(path / "deeper"))
    assert path.read_text() == "notes"


def test_a_file_in_the_place_of_a_kind_is_refused(work: WorkDirectory) -> None:
    work.path.mkdir()
    (work.path / KIND).touch()
    assert work.names(KIND) == []
    with pytest.raises(InputError, match="in the way"):
        make(work)


def test_what_is_fresh_needs_no_right_to_write(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(work)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)

    def refuse(*_: Any, **__: Any) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("sentcompress.store.locking.os.open", refuse)
    assert make(work).digest == made.digest
    with pytest.raises(PermissionError):
        make(work, data=1)


def test_a_full_disk_keeps_what_was_finished_and_goes_on(work: WorkDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def full(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".b.txt.tmp"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            make(work)
    partial = work.path / KIND / ".main.partial"
    assert sorted(p.name for p in partial.rglob("*") if p.is_file()) == ["a.txt", REQUEST]
    assert content(make(work, text="two")) == {"one", "two"}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tiny file system takes root")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no mounts here")
    try:
        work = WorkDirectory(place / "work")
        make(work, data=0)
        with pytest.raises(OSError, match="No space"):
            make(work, text="x" * 16384, files=tuple(f"{number}.txt" for number in range(9)), data=1)
        assert content(work.get(KIND)) == {"one"}
        partial = work.path / KIND / ".main.partial"
        assert (partial / "0.txt").exists()
        assert not list(partial.glob(".*.tmp"))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_request_is_plain_json(work: WorkDirectory) -> None:
    artifact = make(work)
    request = json.loads((artifact.path / REQUEST).read_text(encoding="utf-8"))
    assert request["fingerprint"] == artifact.fingerprint
    assert request["parameters"] == {"seed": 0}


def test_nothing_is_made_of_itself(work: WorkDirectory) -> None:
    made = make(work)
    again = Request(KIND, made.name, "teacher-embed", {}, {made.reference: made.digest})
    with pytest.raises(UsageError, match="cannot be its own input") as caught, work.build(again):
        pass
    assert "`name`" in str(caught.value.hint)
    assert work.get(KIND, made.name).digest == made.digest


@pytest.mark.parametrize(
    ("label", "part"),
    [
        ("owner/a model", "owner-a-model"),
        ("..hidden-", "hidden"),
        ("naïve_2.0", "naïve_2.0"),
        ("???", ""),
        ("x" * 119 + "-tail", "x" * 119),
    ],
)
def test_a_label_as_a_part_of_a_name(label: str, part: str) -> None:
    assert name_part(label) == part
    if part:
        check_name(part)


@pytest.mark.parametrize(("error", "left"), [(UsageError("cannot be so"), []), (InputError("cannot be read"), ["a"])])
def test_what_cannot_be_done_as_asked_leaves_nothing_to_go_on_with(
    tmp_path: Path, error: Exception, left: list[str]
) -> None:
    work = WorkDirectory(tmp_path)

    def fail() -> None:
        with work.build(Request("students", "a", "distill", {})) as build:
            with build.write("tokens") as path:
                path.touch()
            raise error

    with pytest.raises(type(error)):
        fail()
    assert work.unfinished("students") == left
