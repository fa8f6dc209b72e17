"""Measures the memory of a model in a separate process, which loads it, encodes, and reports its peak.

The measuring process itself would be misleading: it holds other models and reuses freed memory. A process that only
imports, loads and encodes has one peak, from which the memory before loading can be subtracted.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import BinaryIO

from sentcompress.errors import SentcompressError
from sentcompress.measuring.runtimes import Job
from sentcompress.process_memory import peak_memory, resident_memory


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of resident memory of a process that encodes with one model.

    Attributes:
        peak_memory_bytes: peak of the whole process: Python, libraries, model, batches.
        model_memory_bytes: that peak minus the memory after importing the libraries, before loading the model.
        device_memory_bytes: peak of torch's allocations on a GPU; None on a CPU.
    """

    peak_memory_bytes: int
    model_memory_bytes: int
    device_memory_bytes: int | None

    def as_dict(self) -> dict[str, int | None]:
        return asdict(self)


def measure_memory(job: Job, texts: Sequence[str], batch_tokens: int) -> MemoryUse:
    """Start a process that loads `job`, encodes `texts` in batches of `batch_tokens` tokens, and then one by itself.

    Raises:
        SentcompressError: if it fails, most likely because it runs out of memory.
    """
    # By itself, `-m` looks for modules in the current folder first, which may hold a `datasets.py`.
    command = [sys.executable, "-P", "-m", "sentcompress.measuring.memory"]
    places = [*map(os.path.abspath, sys.path), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places))}
    asked = pickle.dumps((job, list(texts), batch_tokens))
    done = subprocess.run(command, input=asked, env=environment, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise SentcompressError(
            f"the process that measures memory failed: {said[-1]}", "free memory, or measure smaller models"
        )
    found: MemoryUse = pickle.loads(done.stdout)
    return found


def _measure(asked: BinaryIO) -> MemoryUse:
    # Unpickling the job imports the modules that it needs.
    job, texts, batch_tokens = pickle.load(asked)
    job.import_libraries()
    before = resident_memory()
    engine = job.load()
    engine.batch_tokens = batch_tokens
    engine.encode(texts)
    engine.encode(texts[:1])
    peak = peak_memory()
    return MemoryUse(peak, max(0, peak - before), _on_device(job.device))


def _on_device(device: str) -> int | None:
    if device != "cuda":
        return None
    import torch

    return int(torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    # Libraries must not print into the answer.
    answer, sys.stdout = sys.stdout.buffer, sys.stderr
    # Under `-m` this module is `__main__`; the parent knows the class by the package's name.
    from sentcompress.measuring import memory

    answer.write(pickle.dumps(memory._measure(sys.stdin.buffer)))
