"""Encode lines of text into one `.npy` file of vectors."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sentcompress.commands.encode import Params
from sentcompress.corpora.byte_streams import STDIN, ByteSource, as_source, spooled_source
from sentcompress.corpora.text_files import batches, open_lines
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.encoding.vector_shards import writing_vectors
from sentcompress.errors import InputError
from sentcompress.models.catalog import find_model
from sentcompress.models.devices import pick_device
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import WorkDirectory
from sentcompress.store.atomic import written

COMMAND = Params.command
STORES = ("float32", "float16")
# Lines passed to the engine at a time.
CHUNK = 1000


@dataclass(frozen=True)
class Result:
    """Facts about the written file; `seconds` excludes loading the model."""

    rows: int
    dimension: int
    model: str
    seconds: float
    sentences_per_second: float
    dtype: str
    dtype_reason: str
    output: str


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Result:
    """Write [N, D] vectors, row i for line i (including empty lines); the file appears only when it is complete.

    Raises:
        InputError: if the text is missing, empty or not UTF-8, the model cannot be loaded, or the output is a folder.
    """
    params.check()
    pick_device(params.device)
    if params.output.is_dir():
        raise InputError(f"{params.output} is a folder", "name a file: -o vectors.npy")
    model = find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    with _rereadable(params.lines, reporter) as text:
        rows = _count(text, reporter)
        engine = EncodeEngine(model.load(), device=params.device, dtype=params.dtype, batch_tokens=params.batch_tokens)
        reporter.note(f"{model.label} on {engine.device.type} in {engine.compute_dtype} ({engine.dtype_reason})")
        started = time.perf_counter()
        with (
            written(params.output) as unfinished,
            writing_vectors(unfinished, rows, engine.dimension, params.store) as append,
            reporter.track("encoding", total=rows) as task,
        ):
            for vectors in engine.stream(_chunks(text), task):
                append(vectors)
        seconds = time.perf_counter() - started
    return Result(
        rows=rows,
        dimension=engine.dimension,
        model=model.label,
        seconds=round(seconds, 3),
        sentences_per_second=round(rows / seconds, 1),
        dtype=engine.compute_dtype,
        dtype_reason=engine.dtype_reason,
        output=str(params.output),
    )


@contextmanager
def _rereadable(lines: str, reporter: Reporter) -> Iterator[ByteSource]:
    """The text as a source that can be read twice: to count the lines for the file's header, and to encode them."""
    if lines != STDIN:
        yield as_source(lines)
        return
    if sys.stdin.isatty():
        reporter.note("reading lines from the terminal; press Ctrl-D to finish")
    with spooled_source(sys.stdin.buffer, "standard input") as source:
        yield source


def _count(text: ByteSource, reporter: Reporter) -> int:
    """The number of lines; also checks that all of them can be read."""
    rows = 0
    with reporter.track("counting", unit="lines") as task:
        for rows, _ in open_lines(text):  # noqa: B007
            task.advance()
    return rows


def _chunks(text: ByteSource) -> Iterator[list[str]]:
    return batches((line for _, line in open_lines(text)), CHUNK, len)
