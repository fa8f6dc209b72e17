"""How the command line reports a full disk, a limit on file sizes, and missing permissions."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from distilling import make_work
from warm import Commands

from sentcompress.cli.failures import FULL, FULL_HINT, LIMIT_HINT, explain
from sentcompress.cli.main import _run
from sentcompress.store import Build
from sentcompress.store.arrays import save_array
from sentcompress.store.manifests import sealed
from sentcompress.training.checkpoint import Checkpoints

FULL_DEVICE = Path("/dev/full")
needs_full_device = pytest.mark.skipif(not FULL_DEVICE.exists(), reason="no /dev/full here")
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
NOBODY = 65534
TRAINING = "distill --method mse --student teacher:1 --max-steps 4 --dtype float32 --checkpoint-every 0".split()


@pytest.fixture(scope="module")
def template(tiny_model: Path, sentences: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_work(tmp_path_factory.mktemp("template") / "work", tiny_model, sentences).path


@pytest.fixture
def work(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "work"))


# What stands in the errors of libraries


class Streams:
    """A build whose files are all the same device."""

    path = Path("/dev")

    def has(self, name: str) -> bool:
        return False

    @contextmanager
    def write(self, name: str) -> Iterator[Path]:
        yield FULL_DEVICE


@needs_full_device
def test_a_checkpoint_that_does_not_fit() -> None:
    checkpoints = Checkpoints(cast(Build, Streams()), "state")
    state: Mapping[str, Any] = {"weights": torch.zeros(100_000), "progress": {"log_bytes": 0}}
    with pytest.raises((OSError, RuntimeError)) as raised:
        checkpoints.save(state, None, None, 1)
    assert explain(raised.value) == (FULL, FULL_HINT)


@needs_full_device
@pytest.mark.parametrize("rows", [1, 100_000])
def test_vectors_that_do_not_fit(rows: int) -> None:
    with pytest.raises(OSError, match="No space left") as raised:
        save_array(FULL_DEVICE, np.zeros((rows, 8), np.float32))
    assert raised.value.errno == errno.ENOSPC


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3), np.zeros(0, np.int32), np.arange(6).reshape(2, 3).T])
def test_saved_arrays_are_numpys(array: np.ndarray, tmp_path: Path) -> None:
    save_array(tmp_path / "a.npy", array)
    assert np.array_equal(np.load(tmp_path / "a.npy"), array)
    assert np.load(tmp_path / "a.npy").dtype == array.dtype


@pytest.mark.parametrize(
    "text",
    [
        "[enforce fail at inline_container.cc:672] . unexpected pos 11968 vs 11856",
        "[enforce fail at inline_container.cc:668] . PytorchStreamWriter failed writing file data/0",
        "100000 requested and 2484 written",
    ],
)
def test_without_a_reason_the_file_size_limit_decides(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explain(RuntimeError(text)) == (FULL, FULL_HINT)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 4096))
    assert explain(RuntimeError(text))[1] == LIMIT_HINT


def test_an_earlier_permission_error_is_not_reported() -> None:
    error = ValueError("another thing")
    error.__context__ = PermissionError(errno.EACCES, "Permission denied", "/x")
    assert "ValueError" in explain(error)[0]


# Through the command line


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        (TRAINING, 20_000),
        (["fit-pca", "--dim", "8"], 400),
        (["augment", "lines.txt", "--wordnet", "0", "--name", "other"], 400),
        (["teacher-embed", "--teacher", "MODEL", "--name", "other"], 4_000),
        (["average", "MODEL", "MODEL", "--name", "a"], 20_000),
        (["export", "--model", "MODEL", "--format", "folder"], 20_000),
        (["encode", "lines.txt", "--model", "MODEL", "-o", "new/x.npy"], 4_000),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else str(value),
)
def test_a_limit_on_file_sizes_is_told(
    arguments: list[str], size: int, work: Path, tiny_model: Path, tmp_path: Path, commands: Commands
) -> None:
    (tmp_path / "lines.txt").write_text("".join(f"a man plays number {i}\n" for i in range(200)))
    (tmp_path / "new").mkdir()
    places = {"MODEL": tiny_model, "lines.txt": tmp_path / "lines.txt", "new/x.npy": tmp_path / "new" / "x.npy"}
    words = [places.get(word, word) for word in arguments]
    done = commands(["--offline", *words, "--work", work], file_size=size)
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith(("error:", "help:"))]
    assert lines[0].startswith("error: the file is too large for this disk or for your limits")
    assert lines[1] == f"help:  {LIMIT_HINT}"
    assert not list(tmp_path.rglob(".*.tmp"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("left", [70_000, 120_000, 250_000])
def test_a_full_disk_under_a_training_is_told_and_goes_on_when_there_is_space(
    left: int, small_disk: Path, template: Path, commands: Commands
) -> None:
    work = shutil.copytree(template, small_disk / "work")
    free = shutil.disk_usage(small_disk).free
    filler = small_disk / "filler"
    filler.write_bytes(bytes(free - left))
    done = commands(["--offline", *TRAINING, "--work", work])
    error, hint = done.stderr.splitlines()[-2:]
    assert (done.returncode, hint) == (1, f"help:  {FULL_HINT}")
    assert error.startswith(f"error: {FULL}: {work}/")
    filler.unlink()
    assert commands(["--offline", *TRAINING, "--work", work]).returncode == 0


# Permissions, which do not bind root


def as_nobody(arguments: list[str | Path], outputs: Path) -> tuple[int, str]:
    """Exit code and output of a command in a fork that is not root any more.

    Not in a new process: nobody may not even be able to read the interpreter.
    """
    words = list(map(str, arguments))
    _run(words)  # what is imported lazily is loaded while it can be
    outputs.touch()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            for stream in (1, 2):
                os.dup2(os.open(outputs, os.O_WRONLY | os.O_APPEND), stream)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            torch.set_num_threads(1)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            code = _run(words)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    said = outputs.read_text()
    outputs.unlink()
    return os.waitstatus_to_exitcode(status), said


@pytest.fixture
def theirs(template: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A work directory and a model that everybody may reach; pytest's own folders are closed to others."""
    monkeypatch.setenv("COLUMNS", "300")
    place = Path(f"/tmp/sentcompress-{os.getpid()}")
    place.mkdir(mode=0o755)
    model = shutil.copytree(tiny_model, place / "model")
    (model / "model.safetensors").chmod(0o644)
    work = shutil.copytree(template, place / "work")
    manifest = work / "teacher-vectors" / "main" / "manifest.json"
    named = manifest.read_text().replace(str(tiny_model), str(model))
    manifest.write_text(json.dumps(sealed(json.loads(named))))
    yield place
    shutil.rmtree(place)


@as_root
def test_reading_and_writing_are_told_apart(theirs: Path, tmp_path: Path) -> None:
    model, lines = theirs / "model", theirs / "lines.txt"
    lines.write_text("one line\n")
    encode: list[str | Path] = ["encode", lines, "--model", model, "--work", theirs / "work", "-o"]
    said = as_nobody([*encode, theirs / "work" / "x.npy"], tmp_path / "said")
    assert said[0] == 2
    assert f"no permission to write to {theirs / 'work'}\n" in said[1]
    (theirs / "open").mkdir()
    (theirs / "open").chmod(0o777)
    for closed in (model / "model.safetensors", model):
        before = closed.stat().st_mode
        closed.chmod(0o600)
        code, text = as_nobody([*encode, theirs / "open" / "y.npy"], tmp_path / "said")
        assert (code, "choose a folder" in text) == (1, False), text
        assert f"error: no permission to read {closed}\nhelp:  ask its owner" in text
        closed.chmod(before)


@as_root
def test_status_tells_what_it_may_not_read_in_a_row(theirs: Path, tmp_path: Path) -> None:
    model, vectors = theirs / "model", theirs / "work" / "teacher-vectors" / "main"
    asked: list[str | Path] = ["status", "--json", "--work", theirs / "work"]

    def row() -> tuple[str, str]:
        code, text = as_nobody(asked, tmp_path / "said")
        assert code == 0, text
        sentences, found = json.loads(text)["artifacts"]
        assert sentences["state"] == "fresh"
        return found["state"], found["why"]

    assert row() == ("fresh", "")
    for closed in (model / "config.json", model / "model.safetensors", model):
        before = closed.stat().st_mode
        closed.chmod(0o600)
        state, why = row()
        assert state == "unknown"
        assert why.startswith(f"no permission to read {closed}")
        closed.chmod(before)
    vectors.chmod(0o600)
    state, why = row()
    assert (state, why.startswith(f"no permission to read {vectors}")) == ("damaged", True)


def test_a_file_that_is_not_complete_is_told_by_its_own_name() -> None:
    assert explain(OSError(errno.EIO, "Input/output error", "/there/.vectors.npy.tmp"))[0].endswith(
        "/there/vectors.npy"
    )
    missing = explain(FileNotFoundError(errno.ENOENT, "No such file or directory", "/there/.vectors.npy.tmp"))
    assert missing[0] == "No such file or directory: /there/vectors.npy"
