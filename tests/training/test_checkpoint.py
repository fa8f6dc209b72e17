"""Checkpoints: whole or not there, whatever was killed or damaged."""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from sentcompress.progress import SilentReporter
from sentcompress.store import Build, Request, WorkDirectory
from sentcompress.training import checkpoint
from sentcompress.training.checkpoint import INDEX, Checkpoints

FOLDER = ".scaffold/checkpoints"


class Listener(SilentReporter):
    def __init__(self) -> None:
        self.warned: list[str] = []

    def warn(self, message: str) -> None:
        self.warned.append(message)


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Build]:
    with WorkDirectory(tmp_path).build(Request("students", "one", "distill", {})) as build:
        yield build


def state(step: int) -> dict[str, Any]:
    return {"progress": {"step": step, "log_bytes": 0}, "model": {"w": torch.full((3,), float(step))}}


def best(step: int) -> dict[str, dict[str, torch.Tensor]]:
    return {"encoder": {"w": torch.full((3,), 10.0 * step)}}


def saved(build: Build) -> Path:
    """Two checkpoints, the best weights those of the first; the folder."""
    checkpoints = Checkpoints(build, FOLDER)
    assert checkpoints.load() is None
    checkpoints.save(state(4), best(4), 4, 4)
    checkpoints.save(state(8), best(4), 4, 8)
    return build.path / FOLDER


def test_the_newest_state_and_the_best_weights_come_back(build: Build) -> None:
    folder = saved(build)
    assert sorted(path.name for path in folder.iterdir()) == ["best-4.pt", INDEX, "last-8.pt"]
    checkpoints = Checkpoints(build, FOLDER)
    assert checkpoints.exist()
    found = checkpoints.load()
    assert found is not None
    assert found[0]["progress"] == {"step": 8, "log_bytes": 0}
    assert found[1] is not None
    assert found[1]["encoder"]["w"].tolist() == [40.0] * 3


@pytest.mark.parametrize("name", ["last-8.pt", "best-4.pt"])
@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "folder"])
def test_a_damaged_file_is_named_and_training_starts_again(build: Build, name: str, damage: str) -> None:
    path = saved(build) / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 2] ^= 4
        path.write_bytes(content)
    assert_starts_again(build, name)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", '{"files": 1}', "[" * 100_000),
        '{"files": {"last": {"name": "last-8.pt"}}, "log_bytes": 0}',
    ],
)
def test_a_damaged_index_is_named_and_training_starts_again(build: Build, text: str) -> None:
    (saved(build) / INDEX).write_text(text)
    assert_starts_again(build, INDEX)


def test_an_index_names_no_files_elsewhere(build: Build, tmp_path: Path) -> None:
    folder = saved(build)
    named = json.loads((folder / INDEX).read_text())
    (folder / named["files"]["last"]["name"]).rename(tmp_path / "elsewhere.pt")
    named["files"]["last"]["name"] = str(tmp_path / "elsewhere.pt")
    (folder / INDEX).write_text(json.dumps(named))
    assert_starts_again(build, "elsewhere.pt")


def assert_starts_again(build: Build, name: str) -> None:
    listener = Listener()
    checkpoints = Checkpoints(build, FOLDER, listener)
    assert not checkpoints.exist()
    assert checkpoints.load() is None
    (warning,) = listener.warned
    assert warning.startswith("the last checkpoint cannot be used, training starts over: ")
    assert name in warning
    # The rest of it does not get in the way of the new ones.
    assert not (build.path / FOLDER).exists()
    assert checkpoints.load() is None
    checkpoints.save(state(2), best(2), 2, 2)
    found = checkpoints.load()
    assert found is not None
    assert found[0]["progress"] == {"step": 2, "log_bytes": 0}


def test_files_not_listed_in_an_index_are_removed(build: Build) -> None:
    folder = saved(build)
    (folder / INDEX).unlink()
    listener = Listener()
    assert Checkpoints(build, FOLDER, listener).load() is None
    assert listener.warned == []
    assert not folder.exists()


def test_the_error_of_the_disk_is_the_one_that_is_raised(tmp_path: Path) -> None:
    """torch goes on after a failed write, and complains of a wrong position in the end."""

    class Full(io.BytesIO):
        calls = 0

        def write(self, part: Any) -> int:
            self.calls += 1
            if self.calls == 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(part)

    with pytest.raises(OSError, match="No space left") as raised:
        checkpoint._save(state(1), Full())
    assert raised.value.errno == errno.ENOSPC


def test_weights_that_no_index_lists_are_not_taken_for_a_later_checkpoint(build: Build) -> None:
    """Killed between the weights and the index, a run writes them again: its log may differ."""
    folder = saved(build)
    (folder / "last-12.pt").write_bytes(b"of a run that was killed")
    checkpoints = Checkpoints(build, FOLDER)
    checkpoints.load()
    assert not (folder / "last-12.pt").exists()
    checkpoints.save(state(12), best(4), 4, 12)
    found = Checkpoints(build, FOLDER).load()
    assert found is not None
    assert found[0]["progress"]["step"] == 12


@pytest.mark.parametrize("content", [None, b"short"])
def test_a_log_that_lost_lines_starts_training_again(build: Build, content: bytes | None) -> None:
    (build.path / "log.jsonl").write_bytes(b"0123456789")
    known = state(4)
    known["progress"]["log_bytes"] = 10
    Checkpoints(build, FOLDER).save(known, None, None, 4)
    assert Checkpoints(build, FOLDER).exist()
    (build.path / "log.jsonl").unlink()
    if content is not None:
        (build.path / "log.jsonl").write_bytes(content)
    assert_starts_again(build, "log.jsonl")
