"""What a power cut may leave, on files whose history is known."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.disk import STATES, Disk
from faults.shim import Operation

Found = dict[str, bytes | None]


class Recorder:
    """A folder in which operations are carried out and noted down, as the shim does."""

    def __init__(self, folder: Path) -> None:
        self.box, self.store = folder / "box", folder / "store"
        self.box.mkdir()
        self.store.mkdir()
        self.done: list[Operation] = []

    def _note(self, kind: str, path: str, other: str = "") -> None:
        self.done.append(Operation(kind, path, other, True))

    def write(self, path: str, text: bytes) -> None:
        if not (self.box / path).exists():
            self._note("create", path)
        (self.box / path).write_bytes(text)
        self._note("write", path)

    def fsync(self, path: str) -> None:
        if (self.box / path).is_dir():
            self._note("fsync-folder", path)
            return
        shutil.copy(self.box / path, self.store / str(len(self.done)))
        self._note("fsync", path)

    def mkdir(self, path: str) -> None:
        (self.box / path).mkdir()
        self._note("mkdir", path)

    def rename(self, path: str, other: str) -> None:
        (self.box / path).replace(self.box / other)
        self._note("rename", path, other)

    def unlink(self, path: str) -> None:
        (self.box / path).unlink()
        self._note("unlink", path)


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    found = Recorder(tmp_path)
    (found.box / "old").write_bytes(b"old")
    return found


def left(recorder: Recorder, state: str, act: Callable[[Recorder], None], seed: int = 0) -> Found:
    """What is in the box after the operations and a power cut."""
    disk = Disk(recorder.box, recorder.store)
    act(recorder)
    disk.replay(recorder.done)
    assert disk.unlike() == []
    disk.leave(state, random.Random(seed))
    inner = sorted(recorder.box.rglob("*"))
    return {p.relative_to(recorder.box).as_posix(): None if p.is_dir() else p.read_bytes() for p in inner}


def replace_well(recorder: Recorder) -> None:
    recorder.write("new", b"new")
    recorder.fsync("new")
    recorder.rename("new", "old")
    recorder.fsync(".")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("seed", range(5))
def test_what_was_made_durable_stays(recorder: Recorder, state: str, seed: int) -> None:
    assert left(recorder, state, replace_well, seed) == {"old": b"new"}


def test_without_an_fsync_of_the_folder_the_names_may_be_the_old_ones(recorder: Recorder) -> None:
    def act(recorder: Recorder) -> None:
        recorder.write("new", b"new")
        recorder.fsync("new")
        recorder.rename("new", "old")

    assert left(recorder, "least", act) == {"old": b"old"}


def test_without_an_fsync_of_the_file_it_may_be_empty(recorder: Recorder) -> None:
    def act(recorder: Recorder) -> None:
        recorder.write("new", b"new")
        recorder.rename("new", "old")
        recorder.fsync(".")

    assert left(recorder, "least", act) == {"old": b""}


def test_a_file_that_was_written_to_again_is_what_it_was_at_its_last_fsync(recorder: Recorder) -> None:
    def act(recorder: Recorder) -> None:
        recorder.write("old", b"first")
        recorder.fsync("old")
        recorder.write("old", b"second")

    assert left(recorder, "names", act) == {"old": b"first"}


def test_a_removal_that_is_not_durable_comes_undone(recorder: Recorder) -> None:
    assert left(recorder, "least", lambda recorder: recorder.unlink("old")) == {"old": b"old"}
    shutil.rmtree(recorder.store)


def test_a_folder_whose_name_is_lost_takes_its_files_with_it(recorder: Recorder) -> None:
    def act(recorder: Recorder) -> None:
        recorder.mkdir("inner")
        recorder.write("inner/file", b"bytes")
        recorder.fsync("inner/file")
        recorder.fsync("inner")

    assert left(recorder, "least", act) == {"old": b"old"}


def test_a_journal_keeps_the_order(recorder: Recorder) -> None:
    """Of changes in several folders, those up to one point in time are there, and none after it."""

    def act(recorder: Recorder) -> None:
        recorder.mkdir("a")
        recorder.mkdir("b")
        for number in range(4):
            recorder.write(f"{'ab'[number % 2]}/{number}", b"")

    seen = set()
    for seed in range(40):
        for path in recorder.box.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (recorder.box / "old").write_bytes(b"old")
        recorder.done.clear()
        numbers = tuple(sorted(int(Path(name).name) for name in left(recorder, "journal", act, seed) if "/" in name))
        assert numbers == tuple(range(len(numbers)))
        seen.add(numbers)
    assert len(seen) > 2
