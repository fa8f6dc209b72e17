"""Several hosts on one machine, for tests of what they share.

A `Host` is a UTS and a mount namespace with a host name of its own, in which another file is mounted over the kernel's
boot id. The kernel remains the same, so its locks hold on all of these hosts. Two mounts of one folder through FUSE
(bindfs) show the same files, but a lock on one of them does not hold on the other. `guests` has hosts with kernels of
their own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parents[1]
BOOT_ID = "/proc/sys/kernel/random/boot_id"
ENTER = f'hostname "$1" && mount --bind "$2" {BOOT_ID} && shift 2 && exec "$@"'
# Nothing takes nearly as long.
LIMIT_SECONDS = 600


class Process:
    """Python on a host: what it says is in two files, and it can be waiting for a line on its standard input."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.error = output.with_suffix(".err")

    @property
    def pid(self) -> int:
        """Its number on its host."""
        raise NotImplementedError

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Give it a line to read."""
        raise NotImplementedError

    def kill(self) -> None:
        """Kill it, as `kill -9` there does."""
        raise NotImplementedError

    def said(self) -> str:
        return self.output.read_text(encoding="utf-8") if self.output.exists() else ""

    def complained(self) -> str:
        return self.error.read_text(encoding="utf-8") if self.error.exists() else ""

    def until(self, text: str) -> None:
        """Wait until it has said something, on standard output or standard error."""
        wait_for(lambda: text in self.said() + self.complained() or self.code is not None)
        assert text in self.said() + self.complained(), (self.code, self.said(), self.complained())

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        wait_for(lambda: self.code is not None)
        code = self.code
        assert code is not None
        return code

    def end(self) -> int:
        """Let it go on, to its end; its exit code."""
        self.go_on()
        return self.wait()


class Machine(Protocol):
    """Where processes are started.

    Attributes:
        work: where it has the work directory.
    """

    @property
    def name(self) -> str: ...

    @property
    def work(self) -> Path: ...

    def start(self, *words: object) -> Process:
        """Start Python with these arguments."""


def run(host: Machine, *words: object) -> Process:
    """A process that has run to its end."""
    process = host.start(*words)
    try:
        process.end()
    finally:
        process.kill()
    return process


@contextmanager
def started(host: Machine, *words: object, until: str) -> Iterator[Process]:
    """A process that has said something; killed at the end."""
    process = host.start(*words)
    try:
        process.until(until)
        yield process
    finally:
        process.kill()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def variables(work: Path) -> dict[str, str]:
    """The environment of processes on all hosts."""
    given = {"PYTHONPATH": str(ROOT), "SENTCOMPRESS_WORK": str(work), "PATH": os.environ["PATH"]}
    return given | {"OMP_NUM_THREADS": "1", "COLUMNS": "500"}


class LocalProcess(Process):
    def __init__(self, output: Path, command: list[str], work: Path) -> None:
        super().__init__(output)
        with self.output.open("w") as out, self.error.open("w") as error:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=out, stderr=error, env=variables(work), text=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid  # `unshare` and `sh` have become Python

    @property
    def code(self) -> int | None:
        return self._process.poll()

    def go_on(self) -> None:
        assert self._process.stdin
        try:
            self._process.stdin.write("\n")
            self._process.stdin.close()
        except BrokenPipeError:
            pass  # it reads nothing, and has ended

    def kill(self) -> None:
        if self.code is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        assert self._process.stdin
        self._process.stdin.close()


@dataclass(frozen=True)
class Host:
    """A host of this kernel.

    Attributes:
        folder: for its boot id, and what its processes say.
    """

    name: str
    folder: Path
    work: Path
    boot_id: Path

    def start(self, *words: object) -> Process:
        command = ["unshare", "--uts", "--mount", "sh", "-c", ENTER, "sh", self.name, str(self.boot_id), sys.executable]
        number = len(list(self.folder.glob("*.out")))
        return LocalProcess(self.folder / f"{number}.out", [*command, *map(str, words)], self.work)


def make_host(folder: Path, name: str, work: Path) -> Host:
    """A host that has just been started: its boot id is a new one."""
    folder.mkdir()
    boot_id = folder / "boot_id"
    boot_id.write_text(f"boot id of {folder}\n", encoding="ascii")
    return Host(name, folder, work, boot_id)


@contextmanager
def mounted(folder: Path, point: Path) -> Iterator[Path]:
    """`folder` mounted at `point` through FUSE; removed at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    point.mkdir(parents=True)
    subprocess.run(["bindfs", folder, point], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


def why_no_hosts() -> str:
    """Why this machine cannot be several hosts; empty if it can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root, for namespaces"
    if not shutil.which("unshare") or not Path(BOOT_ID).exists():
        return "needs Linux and unshare, of util-linux"
    command = ["unshare", "--uts", "--mount", "sh", "-c", ENTER, "sh", "node1", "/dev/null", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"namespaces are not allowed here: {tried.stderr.strip()}" if tried.returncode else ""


def why_no_mounts(folder: Path) -> str:
    """Why one folder cannot be mounted twice here; empty if it can. `folder` is for a try."""
    if not shutil.which("bindfs"):
        return "needs bindfs (apt-get install bindfs)"
    if not Path("/dev/fuse").exists():
        return "needs FUSE: there is no /dev/fuse"
    try:
        with mounted(folder / "real", folder / "point"):
            return ""
    except subprocess.CalledProcessError as error:
        return f"FUSE cannot be mounted here: {error}"
