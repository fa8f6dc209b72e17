"""A crash at every step of a build, of a replacement and of a recovery leaves the old artifact or the new one.

A forked child dies at its n-th touch of the file system; the parent looks at what is left.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from building import KIND, asked, content, in_a_child, interrupt, make

from sentcompress.store import MANIFEST, REQUEST, SCAFFOLD, Artifact, WorkDirectory, atomic, lookup

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


def test_a_reader_waits_for_a_living_writer_between_two_renames(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time in which the reader is paused itself does not count."""
    make(work)
    started, waits, go_on = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Event()
    seconds = count(step=1000)
    clock = SimpleNamespace(sleep=lambda pause: waits.set() or time.sleep(pause), monotonic=lambda: next(seconds))
    monkeypatch.setattr(lookup, "time", clock)

    def swap_slowly() -> None:
        rename = Path.rename

        def slow(path: Path, target: Path) -> Path:
            moved = rename(path, target)
            if path.name == "main":
                started.set()
                go_on.wait(600)
            return moved

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "rename", slow)
            make(work, text="two", data=1)

    writer = multiprocessing.get_context("fork").Process(target=swap_slowly)
    writer.start()
    assert started.wait(600)
    assert not (work.path / KIND / "main").exists()
    fork = multiprocessing.get_context("fork")
    reader = fork.Process(target=lambda: content(work.get(KIND)) == {"two"} or os._exit(5))
    reader.start()
    while not waits.wait(0.01):
        assert reader.is_alive()
    go_on.set()
    reader.join(600)
    writer.join(600)
    assert (reader.exitcode, writer.exitcode) == (0, 0)


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
