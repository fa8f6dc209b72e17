"""Inputs by name: files, standard input and data sets on the hub, each with a digest of its content."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from sentcompress.corpora.byte_streams import (
    COMPRESSED,
    STDIN,
    ByteSource,
    as_source,
    format_extension,
    spooled_source,
)
from sentcompress.corpora.readers import FILE_EXTENSIONS, ReadOptions, find_format, read_records
from sentcompress.corpora.records import Record
from sentcompress.corpora.text_files import BadRecords
from sentcompress.progress import Reporter

HUB_PREFIX = "hub:"
# A configuration can follow: nyu-mll/glue:qqp.
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+(:[\w.-]+)?)?")


class Input(Protocol):
    """One input.

    Attributes:
        reference: its name in the artifact's list of inputs ("file:<absolute path>", "stdin:-", "hub:<name>").
        digest: identifies the content.
        origin: the value of the column `origin` in the sentence table.
    """

    @property
    def reference(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def origin(self) -> str: ...

    def records(self, bad: BadRecords) -> Iterator[Record]:
        """All records, in order. Raises InputError; faults of single lines go through `bad`."""


@dataclass(frozen=True)
class FileInput:
    """A file, or a copy of standard input."""

    source: ByteSource
    reference: str
    digest: str
    origin: str
    options: ReadOptions

    def records(self, bad: BadRecords) -> Iterator[Record]:
        return read_records(self.source, self.options, bad)


@contextmanager
def open_inputs(
    names: Sequence[str],
    options: ReadOptions,
    config: str | None,
    revision: str | None,
    spool: Path,
    reporter: Reporter,
) -> Iterator[list[Input]]:
    """The named inputs, hashed, and checked as far as that is quick.

    Standard input and pipes can be read only once, so they are copied to an unnamed temporary file in `spool`.

    Raises:
        InputError: a file that is missing or of the wrong format, a data set that is missing or cannot be reached.
    """
    with ExitStack() as stack:
        sources: list[ByteSource | None] = []
        for name in names:
            if name == STDIN or _is_pipe(name):
                sources.append(stack.enter_context(_spooled(name, spool, reporter)))
            else:
                sources.append(None if is_hub_name(name) else as_source(name))
        for source in sources:
            if source is not None:
                find_format(source, options.format)
        inputs: list[Input] = []
        for name, source in zip(names, sources, strict=True):
            if source is None:
                from sentcompress.corpora.hub import hub_input

                data_set, _, own = name.removeprefix(HUB_PREFIX).partition(":")
                inputs.append(hub_input(data_set, own or config, revision, options))
            else:
                inputs.append(_file_input(name, source, _origin(name, names), options, reporter))
        yield inputs


def _is_pipe(name: str) -> bool:
    """Whether a path is neither a file nor a folder: a named pipe, or the shell's `<(command)`."""
    return os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)


def is_hub_name(name: str) -> bool:
    """Whether a name means a data set on the hub: it starts with `hub:`, or looks like one and is not a file here."""
    if name.startswith(HUB_PREFIX):
        return True
    if os.path.exists(name) or format_extension(name) in FILE_EXTENSIONS or Path(name).suffix in COMPRESSED:
        return False
    return _HUB_NAME.fullmatch(name) is not None


def _origin(name: str, names: Sequence[str]) -> str:
    """The bare file name if it is unambiguous, so that moving a folder does not change the table; else the path."""
    short = Path(name).name if name != STDIN else "stdin"
    return short if sum(Path(other).name == short for other in set(names)) <= 1 else str(Path(name).resolve())


def _file_input(name: str, source: ByteSource, origin: str, options: ReadOptions, reporter: Reporter) -> FileInput:
    reference = f"stdin:{name}" if name == STDIN or _is_pipe(name) else f"file:{Path(name).resolve()}"
    with source.open() as stream:
        return FileInput(source, reference, _digest(stream, origin, reporter), origin, options)


def _digest(stream: BinaryIO, origin: str, reporter: Reporter) -> str:
    whole = hashlib.sha256()
    with reporter.track(f"hashing {origin}", total=os.fstat(stream.fileno()).st_size, unit="bytes") as task:
        while block := stream.read(2**20):
            whole.update(block)
            task.advance(len(block))
    return whole.hexdigest()


@contextmanager
def _spooled(name: str, folder: Path, reporter: Reporter) -> Iterator[ByteSource]:
    folder.mkdir(parents=True, exist_ok=True)
    if name == STDIN:
        if sys.stdin.isatty():
            reporter.note("reading sentences from the terminal; end with Ctrl-D")
        with spooled_source(sys.stdin.buffer, "standard input", folder) as source:
            yield source
    else:
        with open(name, "rb") as pipe, spooled_source(pipe, name, folder) as source:
            yield source
