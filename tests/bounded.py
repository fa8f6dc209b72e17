"""Processor time and memory for reading a file, measured in a separate process without what its imports take."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_CODE = """
import json, sys, time
import numpy, pyarrow.parquet, pyarrow.compute
from sentcompress.corpora import pairs, readers, sts, text_files
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError
from sentcompress.process_memory import peak_memory, resident_memory

def texts(path):
    for record in readers.read_records(path, bad=bad):
        yield from record.texts

def lines(path):
    for number, line in text_files.open_lines(path):
        yield line

def pair_texts(path):
    return iter([row.first for row in pairs.read_pairs(path).rows])

how, path, skip = sys.argv[1:]
bad = BadRecords(skip == "skip")
before, started = resident_memory(), time.process_time()
count, message = 0, ""
try:
    for _ in {"texts": texts, "lines": lines, "pairs": pair_texts}[how](path):
        count += 1
except InputError as error:
    message = error.message
seconds = time.process_time() - started
print(json.dumps([count, bad.count, message, (peak_memory() - before) // 2**20, seconds]))
"""


@dataclass(frozen=True)
class Cost:
    """Texts that were read, bad records that were skipped, the error's message, MiB above the imports, CPU seconds."""

    texts: int
    bad: int
    message: str
    memory: int
    seconds: float


def cost_of_reading(path: Path, how: str = "texts", *, skip: bool = False) -> Cost:
    """Read a file to its end or its first error: its `texts`, as records; its `lines`; its `pairs`."""
    command = [sys.executable, "-c", _CODE, how, str(path), "skip" if skip else "stop"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return Cost(*json.loads(run.stdout))
