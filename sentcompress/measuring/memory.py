"""The memory that a model takes: measured in a process of its own, which loads it, encodes, and tells its peak.

Memory of the measuring process itself would say nothing: it holds other models, and what was freed there is used
again. A process that only imports, loads and encodes has one peak, and what it held before the model was loaded can
be taken off.
"""

from __future__ import annotations

import pickle
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from sentcompress.errors import SentcompressError
from sentcompress.measuring.runtimes import Job

STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of resident memory of a process that encodes with one model.

    Attributes:
        peak_memory_bytes: the most that the process held: Python, libraries, model, batches.
        model_memory_bytes: that, less what it held when the libraries were imported and nothing was loaded.
        device_memory_bytes: the most that torch allocated on a GPU; None on a CPU.
    """

    peak_memory_bytes: int
    model_memory_bytes: int
    device_memory_bytes: int | None

    def as_dict(self) -> dict[str, int | None]:
        return asdict(self)


def measure_memory(job: Job, texts: Sequence[str], batch_tokens: int) -> MemoryUse:
    """Start a process that loads `job`, encodes `texts` in batches of `batch_tokens` tokens, and then one alone.

    Raises:
        SentcompressError: if it fails; out of memory, most likely.
    """
    command = [sys.executable, "-m", "sentcompress.measuring.memory"]
    asked = pickle.dumps((job, list(texts), batch_tokens))
    done = subprocess.run(command, input=asked, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise SentcompressError(f"the process that measures memory failed: {said[-1]}", "is there memory enough?")
    found: MemoryUse = pickle.loads(done.stdout)
    return found


def _measure(asked: BinaryIO) -> MemoryUse:
    # Unpickling the job imports the package's own modules for it.
    job, texts, batch_tokens = pickle.load(asked)
    job.import_libraries()
    before = _resident()
    engine = job.load()
    engine.batch_tokens = batch_tokens
    engine.encode(texts)
    engine.encode(texts[:1])
    peak = _peak()
    return MemoryUse(peak, max(0, peak - before), _on_device(job.device))


def _resident() -> int:
    """Bytes of memory that this process holds now; where nobody tells, the most that it held so far."""
    return _status("VmRSS") or _from_rusage()


def _peak() -> int:
    # Not ru_maxrss, where there is a choice: on Linux it goes on from the peak of the process that started this one.
    return _status("VmHWM") or _from_rusage()


def _status(key: str) -> int | None:
    if not STATUS.exists():
        return None
    lines = STATUS.read_text(encoding="ascii", errors="replace").splitlines()
    found = [line.split() for line in lines if line.startswith(f"{key}:")]
    return 1024 * int(found[0][1]) if found else None


def _from_rusage() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _on_device(device: str) -> int | None:
    if device != "cuda":
        return None
    import torch

    return int(torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    # What libraries print must not get into the answer.
    answer, sys.stdout = sys.stdout.buffer, sys.stderr
    # Under `-m` this module is `__main__`; the parent knows the class by the package's name.
    from sentcompress.measuring import memory

    answer.write(pickle.dumps(memory._measure(sys.stdin.buffer)))
