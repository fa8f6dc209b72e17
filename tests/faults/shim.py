"""shim.c from Python: compiling it, and the memory that this process shares with those that run under it."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
VARIABLE = "FAULTS_CONTROL"
# In the order of the enumerations in shim.c.
KINDS = ("create", "truncate", "write", "fsync", "fsync-folder", "rename", "unlink", "mkdir", "rmdir", "link")
OUTCOMES = ("nothing", "kill-before", "kill-after", "fail-once", "fail-always")
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}
ENTRIES, NAME = 16384, 240


class Entry(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int32),
        ("done", ctypes.c_int32),
        ("path", ctypes.c_char * NAME),
        ("other", ctypes.c_char * NAME),
    )


class Control(ctypes.Structure):
    _fields_ = (
        ("armed", ctypes.c_int32),
        ("outcome", ctypes.c_int32),
        ("error", ctypes.c_int32),
        ("half", ctypes.c_int32),
        ("at", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("fired", ctypes.c_int64),
        ("failing", ctypes.c_int32),
        ("keep", ctypes.c_int32),
        ("mapped", ctypes.c_int32),
        ("box", ctypes.c_char * NAME),
        ("store", ctypes.c_char * NAME),
        ("log", Entry * ENTRIES),
    )


@dataclass(frozen=True)
class Fault:
    """What happens at the operation number `at` (an error: at the first one from there on that can fail so).

    Attributes:
        outcome: one of OUTCOMES.
        error: a key of ERRORS, for the two outcomes that fail.
        half: a write that fails writes half of its bytes first, and the next operation fails.
        torn: a kill is a power cut: what disk.py calls the state that is left.
    """

    at: int = 0
    outcome: str = "nothing"
    error: str = "ENOSPC"
    half: bool = False
    torn: str = ""

    @property
    def label(self) -> str:
        """The outcome as the tables name it."""
        if self.torn:
            return "torn"
        return f"{self.error} {self.outcome[5:]}" if self.outcome.startswith("fail") else self.outcome


NO_FAULT = Fault()


@dataclass(frozen=True)
class Operation:
    """A change of the disk: which, where below the box, and whether it was carried out."""

    kind: str
    path: str
    other: str
    done: bool


def find_compiler() -> str | None:
    """The C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc")


def compile_shim(folder: Path) -> Path:
    """The library, compiled into `folder`."""
    library = folder / "shim.so"
    command = [
        find_compiler() or "cc",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(SOURCE),
    ]
    subprocess.run([*command, "-ldl"], check=True)
    return library


def make_control(path: Path) -> None:
    """The file behind the shared memory, all zeros."""
    with path.open("wb") as stream:
        stream.truncate(ctypes.sizeof(Control))


class Shim:
    """The memory that is shared with the processes which have the library preloaded."""

    def __init__(self, control: Path, box: Path, store: Path) -> None:
        with control.open("r+b") as stream:
            self._control = Control.from_buffer(mmap.mmap(stream.fileno(), ctypes.sizeof(Control)))
        self._control.box, self._control.store = os.fsencode(box), os.fsencode(store)

    def arm(self, fault: Fault) -> None:
        """Count from nothing, with this fault planned. Only the forked child should do anything then."""
        control = self._control
        control.outcome, control.error = OUTCOMES.index(fault.outcome), ERRORS[fault.error]
        control.at, control.half, control.keep = fault.at, fault.half, bool(fault.torn)
        control.count = control.failing = control.mapped = 0
        control.fired = -1
        control.armed = 1

    def disarm(self) -> None:
        self._control.armed = 0

    @property
    def fired(self) -> int | None:
        """The number of the operation at which the fault was, the first one of several."""
        return int(self._control.fired) if self._control.fired >= 0 else None

    @property
    def mapped(self) -> int:
        """Files that were mapped for writing: changes that were not seen."""
        return int(self._control.mapped)

    def operations(self) -> list[Operation]:
        """What was done since `arm`, the operation that a kill came before included."""
        entries = self._control.log[: self._control.count]
        return [
            Operation(KINDS[one.kind], os.fsdecode(one.path), os.fsdecode(one.other), bool(one.done)) for one in entries
        ]
