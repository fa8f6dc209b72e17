"""Checkpoints: whole or not there, whatever was killed or damaged."""

from __future__ import annotations

import copy
import errno
import io
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from listening import Listener

from sentcompress.store import Build, Request, WorkDirectory
from sentcompress.training import checkpoint
from sentcompress.training.background import on_cpu
from sentcompress.training.checkpoint import INDEX, Checkpoints

FOLDER = ".scaffold/checkpoints"


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
    (warning,) = listener.warnings
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
    assert listener.warnings == []
    assert not folder.exists()


def test_the_error_of_the_disk_is_the_one_that_is_raised() -> None:
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


def test_a_checkpoint_in_the_background_holds_what_was_when_it_began(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first; what training changes meanwhile is in neither."""
    may_write, entered = threading.Event(), []
    write = checkpoint._save

    def held(content: Any, stream: Any) -> None:
        entered.append(content["model"]["w"].tolist() if "model" in content else "best")
        assert may_write.wait(600)
        write(content, stream)

    monkeypatch.setattr(checkpoint, "_save", held)
    known = [state(4), state(8)]
    with Checkpoints(build, FOLDER, background=True) as checkpoints:
        checkpoints.save(known[0], best(4), 4, 4)
        known[0]["model"]["w"] += 100
        known[0]["progress"]["step"] = 100
        second = threading.Thread(target=checkpoints.save, args=(known[1], best(4), 4, 8))
        second.start()
        second.join(0.2)
        assert second.is_alive()
        assert not (build.path / FOLDER / INDEX).exists()
        may_write.set()
        second.join()
        known[1]["model"]["w"] += 100
    assert entered == [[4.0] * 3, "best", [8.0] * 3]
    found = Checkpoints(build, FOLDER).load()
    assert found is not None
    assert found[0]["progress"] == {"step": 8, "log_bytes": 0}
    assert found[0]["model"]["w"].tolist() == [8.0] * 3
    assert sorted(path.name for path in (build.path / FOLDER).iterdir()) == ["best-4.pt", INDEX, "last-8.pt"]


def check_until_it_ends(checkpoints: Checkpoints) -> None:
    for _ in range(6000):
        checkpoints.check()
        time.sleep(0.1)


def fail_after_a_checkpoint(checkpoints: Checkpoints) -> None:
    with checkpoints:
        checkpoints.save(state(4), None, None, 4)
        raise KeyError("what ended the training")


def test_an_error_in_the_background_is_raised_in_the_loop_once(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(content: Any, stream: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "_save", full)
    checkpoints = Checkpoints(build, FOLDER, background=True)
    checkpoints.save(state(4), None, None, 4)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(state(8), None, None, 8)
    checkpoints.save(state(8), None, None, 8)
    with pytest.raises(OSError, match="No space left"):
        check_until_it_ends(checkpoints)
    checkpoints.check()
    checkpoints.save(state(12), None, None, 12)
    with pytest.raises(OSError, match="No space left"), checkpoints:
        pass
    assert not Checkpoints(build, FOLDER).exist()
    with pytest.raises(KeyError):
        fail_after_a_checkpoint(Checkpoints(build, FOLDER, background=True))


def test_a_copy_on_the_cpu_shares_nothing() -> None:
    layer = torch.nn.BatchNorm1d(3)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.5)
    layer(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    known = {"model": layer.state_dict(), "optimizer": optimizer.state_dict(), "sums": [torch.ones(2)], "step": 3}
    copied = on_cpu(known)
    wanted = copy.deepcopy(known)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(9)
    known["sums"][0] += 1
    known["optimizer"]["param_groups"][0]["lr"] = 7.0
    torch.testing.assert_close(copied, wanted, rtol=0, atol=0)
    assert copied["model"]._metadata == layer.state_dict()._metadata


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
