"""Peak memory: of a process of its own, which grows with what is loaded there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sentcompress.errors import SentcompressError
from sentcompress.measuring.memory import measure_memory

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Hog:
    """A job whose model is `megabytes` of numbers, and whose batches need ten megabytes more, which are given back."""

    megabytes: int
    device: str = "cpu"

    def import_libraries(self) -> None:
        pass

    def load(self) -> SimpleNamespace:
        if not self.megabytes:
            raise MemoryError("no room")
        model = np.ones(self.megabytes * MEGABYTE // 8)

        def encode(texts: Sequence[str]) -> float:
            return float(model[0] + np.ones(10 * MEGABYTE // 8).sum())

        return SimpleNamespace(encode=encode, batch_tokens=0)


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    # The child process unpickles `Hog`, so it has to find this module.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setattr(Hog, "__module__", Path(__file__).stem)
    monkeypatch.setitem(sys.modules, Path(__file__).stem, sys.modules[__name__])


def test_the_model_and_its_batches_are_counted_and_the_libraries_are_told_apart() -> None:
    # What this process holds must not show: the child of a large process is not large.
    ballast = np.ones(300 * MEGABYTE // 8)
    found = measure_memory(Hog(80), ["a text"], 1024)
    assert found.model_memory_bytes == pytest.approx(90 * MEGABYTE, rel=0.1)
    assert found.peak_memory_bytes > found.model_memory_bytes
    assert found.peak_memory_bytes < ballast.nbytes
    assert found.device_memory_bytes is None


def test_a_process_that_fails_is_an_error_with_its_last_words() -> None:
    with pytest.raises(SentcompressError, match="no room"):
        measure_memory(Hog(0), ["a text"], 1024)


def test_modules_in_the_current_folder_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "statistics.py").write_text("raise ImportError('not this one')\n", encoding="utf-8")
    (tmp_path / "numpy.py").write_text("raise ImportError('not this one')\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert measure_memory(Hog(1), ["a text"], 1024).peak_memory_bytes > 0


def test_a_process_that_runs_a_graph_has_no_torch() -> None:
    code = "import sys, sentcompress.measuring.runtimes; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
