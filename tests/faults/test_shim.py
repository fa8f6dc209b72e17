"""The library below libc: what it counts, and what it makes of the operation that was chosen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from faults.shim import NO_FAULT, VARIABLE, Fault, Shim, compile_shim, find_compiler, make_control

EVERYTHING = """
import os
os.mkdir("folder")
descriptor = os.open("folder/a", os.O_WRONLY | os.O_CREAT)
os.write(descriptor, b"12345678")
os.fsync(descriptor)
os.ftruncate(descriptor, 4)
os.close(descriptor)
os.rename("folder/a", "folder/b")
folder = os.open("folder", os.O_RDONLY)
os.fsync(folder)
os.link("folder/b", "c")
os.unlink("b", dir_fd=folder)
os.rmdir("folder")
"""
KINDS = "mkdir create write fsync truncate rename fsync-folder link unlink rmdir".split()


class Bench:
    """Runs Python under the library in a box of its own."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.box = folder / "box"
        self.box.mkdir()
        (folder / "store").mkdir()
        self._library = library
        self._control = folder / "control"
        make_control(self._control)
        self.shim = Shim(self._control, self.box, folder / "store")

    def run(self, code: str, fault: Fault = NO_FAULT) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"LD_PRELOAD": str(self._library), VARIABLE: str(self._control)}
        self.shim.arm(fault)
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.box,
            env=environment,
            start_new_session=True,
            capture_output=True,
            text=True,
            check=False,
        )

    def kinds(self) -> list[str]:
        return [operation.kind for operation in self.shim.operations()]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.platform != "linux" or find_compiler() is None:
        pytest.skip("the fault harness needs Linux with a C compiler and libc's headers")
    return compile_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def bench(tmp_path: Path, library: Path) -> Bench:
    return Bench(tmp_path, library)


def test_every_change_is_counted_and_nothing_else(bench: Bench, tmp_path: Path) -> None:
    outside = f"open({str(tmp_path / 'elsewhere')!r}, 'w').write('x'); open('c').read(); print('x')"
    assert bench.run(f"{EVERYTHING}\n{outside}").returncode == 0
    assert bench.kinds() == KINDS
    assert all(operation.done for operation in bench.shim.operations())
    assert [operation.path for operation in bench.shim.operations()][:3] == ["folder", "folder/a", "folder/a"]
    assert (bench.box / "c").read_bytes() == b"1234"


def test_what_would_change_nothing_is_not_counted(bench: Bench) -> None:
    (bench.box / "there").mkdir()
    code = """
import contextlib, os
for act, *given in (os.unlink, "gone"), (os.mkdir, "there"), (os.rename, "gone", "x"), (os.rmdir, "y"):
    with contextlib.suppress(OSError):
        act(*given)
"""
    assert bench.run(code).returncode == 0
    assert bench.kinds() == []


@pytest.mark.parametrize("at", range(len(KINDS)))
def test_a_kill_comes_before_or_after_the_operation(bench: Bench, at: int) -> None:
    ended = bench.run(EVERYTHING, Fault(at, "kill-before"))
    assert ended.returncode == -signal.SIGKILL
    assert [operation.done for operation in bench.shim.operations()] == [True] * at + [False]
    assert bench.shim.fired == at
    subprocess.run(["rm", "-rf", *bench.box.iterdir()], check=True)
    assert bench.run(EVERYTHING, Fault(at, "kill-after")).returncode == -signal.SIGKILL
    assert [operation.done for operation in bench.shim.operations()] == [True] * (at + 1)


@pytest.mark.parametrize(("error", "text"), [("ENOSPC", "No space left on device"), ("EIO", "Input/output error")])
def test_an_operation_fails_once(bench: Bench, error: str, text: str) -> None:
    ended = bench.run(EVERYTHING, Fault(KINDS.index("fsync"), "fail-once", error))
    assert ended.returncode == 1
    assert text in ended.stderr
    assert (bench.box / "folder" / "a").read_bytes() == b"12345678"
    assert not bench.shim.operations()[-1].done


def test_a_full_disk_stays_full_and_files_can_still_be_removed(bench: Bench) -> None:
    (bench.box / "old").write_bytes(b"")
    code = """
import os
for turn in range(3):
    try:
        open(f"new{turn}", "w")
    except OSError as error:
        print(error.errno)
os.rename("old", "moved")
os.unlink("moved")
"""
    ended = bench.run(code, Fault(1, "fail-always", "ENOSPC"))
    assert (ended.returncode, ended.stdout) == (0, "28\n28\n")
    assert [path.name for path in bench.box.iterdir()] == ["new0"]


def test_a_write_may_end_halfway(bench: Bench) -> None:
    code = "open('a', 'wb', buffering=0).write(b'12345678'); open('b', 'wb')"
    ended = bench.run(code, Fault(0, "fail-once", "ENOSPC", half=True))
    assert "No space left" in ended.stderr  # the first operation cannot be halved
    ended = bench.run(code, Fault(1, "fail-once", "ENOSPC", half=True))
    assert (bench.box / "a").read_bytes() == b"1234"
    assert "No space left" in ended.stderr
    assert bench.shim.fired == 1


def test_what_goes_past_libc_s_own_functions_is_seen(bench: Bench) -> None:
    """NumPy writes arrays through a FILE of its own, safetensors renames with a system call of its own."""
    code = """
import numpy, safetensors.numpy
with open("array.npy", "wb") as stream:
    numpy.save(stream, numpy.zeros(3))
safetensors.numpy.save_file({"x": numpy.zeros(3)}, "weights")
"""
    assert bench.run(code).returncode == 0
    operations = bench.shim.operations()
    assert sum(one.kind == "write" and one.path == "array.npy" for one in operations) >= 2
    names = {one.path for one in operations if one.kind == "create"}
    for one in operations:
        if one.kind == "rename":
            names = names - {one.path} | {one.other}
    assert names == {path.name for path in bench.box.iterdir()} == {"array.npy", "weights"}


def test_what_a_file_held_at_its_fsync_is_kept(bench: Bench, tmp_path: Path) -> None:
    code = """
import os
stream = open("a", "wb", buffering=0)
stream.write(b"durable")
os.fsync(stream.fileno())
stream.write(b" and lost")
"""
    assert bench.run(code, Fault(-1, torn="least")).returncode == 0
    at = bench.kinds().index("fsync")
    assert (tmp_path / "store" / str(at)).read_bytes() == b"durable"
