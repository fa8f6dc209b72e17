"""Resident memory: what the system says of this process, and not of the one that started it."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from sentcompress import process_memory
from sentcompress.process_memory import peak_memory, peak_of, resident_memory
from sentcompress.training import job

MEGABYTE = 1_000_000
CHILD = "from sentcompress.process_memory import peak_memory, resident_memory; print(resident_memory(), peak_memory())"

BALLAST = """
import numpy as np
from sentcompress.process_memory import peak_memory, resident_memory
before = resident_memory()
ballast = np.ones(25_000_000)
held = resident_memory()
del ballast
print(before, held, resident_memory(), peak_memory())
"""


def test_the_peak_is_not_that_of_the_process_that_started_this_one() -> None:
    ballast = np.ones(300 * MEGABYTE // 8)
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    resident, peak = map(int, done.stdout.split())
    assert 5 * MEGABYTE < resident <= peak < ballast.nbytes


def test_the_peak_stays_when_memory_is_given_back() -> None:
    # In a process of its own: others may give memory back to the system at any time, or take what was freed before.
    done = subprocess.run([sys.executable, "-c", BALLAST], capture_output=True, text=True, check=True)
    before, held, after, peak = map(int, done.stdout.split())
    assert held - before == pytest.approx(200 * MEGABYTE, rel=0.1)
    assert after < before + 20 * MEGABYTE
    assert peak >= before + 190 * MEGABYTE


def test_training_records_the_peak_of_its_own_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t    4321 kB\nVmRSS:\t    1234 kB\n", encoding="ascii")
    monkeypatch.setattr(process_memory, "STATUS", status)
    assert resident_memory() == 1234 * 1024
    assert job._peak_memory(torch.device("cpu")) == peak_memory() == 4321 * 1024


@pytest.mark.parametrize(("platform", "unit"), [("darwin", 1), ("linux", 1024)])
def test_without_proc_it_is_what_getrusage_says(
    platform: str, unit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_memory, "STATUS", tmp_path / "absent")
    monkeypatch.setattr("sys.platform", platform)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    monkeypatch.setattr(resource, "getrusage", lambda _: usage)
    assert peak_memory() == resident_memory() == peak_of(usage) == unit * usage.ru_maxrss
