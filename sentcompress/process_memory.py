"""Resident memory of this process, in bytes."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """The most resident memory that this process has had."""
    # Not ru_maxrss if possible: on Linux it includes the peak of the process that started this one.
    return _status("VmHWM") or peak_of(resource.getrusage(resource.RUSAGE_SELF))


def resident_memory() -> int:
    """The resident memory now; the peak if the system does not tell."""
    return _status("VmRSS") or peak_memory()


def peak_of(usage: resource.struct_rusage) -> int:
    """The peak of a process that has ended, and of the processes that it waited for, as `os.wait4` reports it.

    On Linux it is at least the peak of the process that started it, so that one has to be small.
    """
    return usage.ru_maxrss if sys.platform == "darwin" else 1024 * usage.ru_maxrss


def _status(key: str) -> int | None:
    if not STATUS.exists():
        return None
    lines = STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    found = [line.split() for line in lines if line.startswith(f"{key}:")]
    return 1024 * int(found[0][1]) if found else None
