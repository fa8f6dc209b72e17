"""Inputs by name: files, folders, standard input, artifacts and data sets on the hub, each with a digest."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from sentcompress.commands.shared import STDIN
from sentcompress.corpora.byte_streams import (
    COMPRESSED,
    ByteSource,
    Readable,
    as_source,
    format_extension,
    spooled_source,
)
from sentcompress.corpora.delimited import find_columns, listed
from sentcompress.corpora.document import Document
from sentcompress.corpora.document_files import (
    FolderFiles,
    as_records,
    digest_of_folder,
    find_document_files,
    folder_records,
    is_table,
    need_columns,
    read_documents,
    read_folder,
)
from sentcompress.corpora.documents_artifact import TRAIN, find_documents, names_documents
from sentcompress.corpora.markup import HTML, PAGES
from sentcompress.corpora.readers import FILE_EXTENSIONS, ReadOptions, find_format, read_records, read_table
from sentcompress.corpora.records import Record, find_layout
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError
from sentcompress.models.sources import HUB_PREFIX
from sentcompress.progress import Reporter
from sentcompress.store import Artifact, WorkDirectory

# A configuration can follow: nyu-mll/glue:qqp.
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+(:[\w.-]+)?)?")


class Input(Protocol):
    """One input.

    Attributes:
        reference: its name in the artifact's list of inputs ("file:<absolute path>", "stdin:-", "hub:<name>",
            "documents/<name>").
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

    def documents(self, bad: BadRecords) -> Iterator[Document]:
        """The same content as documents."""


@dataclass(frozen=True)
class FileInput:
    """A file, or a copy of standard input."""

    source: ByteSource
    reference: str
    digest: str
    origin: str
    options: ReadOptions

    def records(self, bad: BadRecords) -> Iterator[Record]:
        is_page = self.source.extension in PAGES and not self.options.format
        if is_page or (self.options.text_as and find_format(self.source, self.options.format) == "text"):
            return as_records(self.documents(bad))
        return read_records(self.source, self.options, bad)

    def documents(self, bad: BadRecords) -> Iterator[Document]:
        return read_documents(self.source, self.options, bad)


@dataclass(frozen=True)
class FolderInput:
    """The files of a folder. In plain text, a file is one document."""

    folder: Path
    found: FolderFiles
    digest: str
    origin: str
    options: ReadOptions

    @property
    def reference(self) -> str:
        return f"file:{self.folder.resolve()}"

    def records(self, bad: BadRecords) -> Iterator[Record]:
        return folder_records(self.found, self.folder, self.options, bad)

    def documents(self, bad: BadRecords) -> Iterator[Document]:
        return read_folder(self.found, self.folder, self.options, bad)


@contextmanager
def open_inputs(
    names: Sequence[str],
    options: ReadOptions,
    config: str | None,
    revision: str | None,
    work: WorkDirectory,
    reporter: Reporter,
) -> Iterator[list[Input]]:
    """The named inputs, hashed, and checked as far as that is quick.

    Standard input and pipes can be read only once, so they are copied to an unnamed temporary file in the work
    directory.

    Raises:
        InputError: a file that is missing or of the wrong format, a data set that is missing or cannot be reached.
    """
    with ExitStack() as stack:
        sources: list[ByteSource | Artifact | FolderFiles | None] = []
        for name in names:
            if name == STDIN or is_pipe(name):
                sources.append(stack.enter_context(spooled_input(name, reporter, work.path)))
            elif artifact := find_documents(work, name):
                sources.append(artifact)
            elif os.path.isdir(name):
                sources.append(find_document_files(Path(name), work.path, options.format))
            else:
                sources.append(None if is_hub_data(name) else as_source(name))
        for source in sources:
            if isinstance(source, ByteSource) and source.extension not in PAGES:
                find_format(source, options.format)
        if None not in sources:
            _check_local([one for one in sources if one is not None], listed(names), options, config, revision)
        inputs: list[Input] = []
        for name, source in zip(names, sources, strict=True):
            if isinstance(source, Artifact):
                file = as_source(source.path / TRAIN)
                # The kind of a text tells a query from a passage: see `SentenceTable.roles`.
                kinds = ReadOptions(domain="kind")
                inputs.append(FileInput(file, source.reference, source.digest, source.reference, kinds))
            elif isinstance(source, FolderFiles):
                inputs.append(_folder_input(Path(name), source, _origin(name, names), options, reporter))
            elif source is None:
                from sentcompress.corpora.hub import hub_input

                data_set, _, own = name.removeprefix(HUB_PREFIX).partition(":")
                inputs.append(hub_input(data_set, own or config, revision, options))
            else:
                inputs.append(_file_input(name, source, _origin(name, names), options, reporter))
        yield inputs


def _check_local(
    sources: Iterable[ByteSource | Artifact | FolderFiles],
    names: str,
    options: ReadOptions,
    config: str | None,
    revision: str | None,
) -> None:
    """Raise InputError for options that none of the inputs, together called `names`, has any use for."""
    if given := [flag for flag, value in (("`config`", config), ("`revision`", revision)) if value is not None]:
        raise InputError(f"{listed(given)}: {names} is not a data set of the hub", f"leave out {listed(given)}")
    files: list[Readable] = []
    for source in sources:
        if isinstance(source, FolderFiles):
            files += source.files
        elif isinstance(source, ByteSource):
            files.append(source)
    need_columns(files, names, options)
    if options.text_as and not any(_divides_text(one, options.format) for one in files):
        raise InputError(f"`text_as`: there is no text file in {names}", "leave out `text_as`")
    if options.split != ReadOptions.split and not any(_has_splits(one, options) for one in files):
        why = "the column split of documents is ignored" if options.documents else "has no rows with a split"
        raise InputError(f"`split`: {names} is not a data set of the hub, and {why}", "leave out `split`")


def _divides_text(readable: Readable, format_name: str | None) -> bool:
    """Whether a file is text that `text_as` divides: no table and no HTML page. One that cannot be read may be."""
    source = as_source(readable)
    if source.extension in PAGES and not format_name:
        return source.extension not in HTML
    try:
        return find_format(source, format_name) == "text"
    except InputError:
        return True


def _has_splits(readable: Readable, options: ReadOptions) -> bool:
    """Whether a table has a column of splits that is read: not if columns are named, and not of documents."""
    if options.columns or not is_table(readable, options.format):
        return False
    rows = read_table(readable, options.format, BadRecords(skip=True))
    first = next((list(row) for _, row in rows), [])
    return "split" in first and not (options.documents and find_layout(as_source(readable).name, first, ()).document)


def check_columns(names: Sequence[str], options: ReadOptions, work: WorkDirectory, *, skip_bad: bool = False) -> None:
    """Check that the tables among local files have the named columns, by the first row of each; nothing is hashed.

    If an input is something else, such as standard input or a data set of the hub, nothing is checked.

    Args:
        skip_bad: whether files of a folder that lack one are skipped when they are read; then they are not checked.

    Raises:
        InputError: if a column is missing, or no file is a table.
    """
    wanted = [*options.columns, *([options.id_column] if options.id_column else [])]
    local = all(os.path.isfile(name) or os.path.isdir(name) for name in names)
    if not wanted or not local or any(find_documents(work, name) for name in names):
        return
    files: list[Path] = []
    checked: list[Path] = []
    for name in names:
        path = Path(name)
        found = find_document_files(path, work.path, options.format) if path.is_dir() else FolderFiles((path,), {})
        files += found.files
        # A collection's columns have no names if it is tab-separated.
        unnamed = found.collection and format_extension(found.files[0]) == "tsv"
        checked += () if unnamed or (skip_bad and path.is_dir()) else found.files
    need_columns(files, listed(names), options)
    for path in checked:
        if is_table(path, options.format):
            rows = read_table(path, options.format, BadRecords(skip=True), wanted)
            if first := next((list(row) for _, row in rows), None):
                find_columns(str(path), wanted, first)


def is_pipe(name: str) -> bool:
    """Whether a path is neither a file nor a folder: a named pipe, or the shell's `<(command)`."""
    return os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name)


def is_hub_data(name: str) -> bool:
    """Whether a name means a data set on the hub: it starts with `hub:`, or looks like one and is not a file here."""
    if name.startswith(HUB_PREFIX):
        return True
    if os.path.exists(name) or names_documents(name):
        return False
    if format_extension(name) in (*FILE_EXTENSIONS, *PAGES) or Path(name).suffix in COMPRESSED:
        return False
    return _HUB_NAME.fullmatch(name) is not None


def _origin(name: str, names: Sequence[str]) -> str:
    """The bare file name if it is unambiguous, so that moving a folder does not change the table; else the path."""
    short = _short(name)
    return short if sum(_short(other) == short for other in set(names)) <= 1 else str(Path(name).resolve())


def _short(name: str) -> str:
    """The name of a file or folder without its path; of standard input, stdin."""
    if name == STDIN:
        return "stdin"
    return Path(name).resolve().name if os.path.isdir(name) else Path(name).name


def _folder_input(
    folder: Path, found: FolderFiles, origin: str, options: ReadOptions, reporter: Reporter
) -> FolderInput:
    if unread := found.unread(folder):
        reporter.note(unread)
    with reporter.track(f"hashing {folder.name}", total=len(found.files), unit="files") as task:
        return FolderInput(folder, found, digest_of_folder(folder, found, task.advance), origin, options)


def _file_input(name: str, source: ByteSource, origin: str, options: ReadOptions, reporter: Reporter) -> FileInput:
    reference = f"stdin:{name}" if name == STDIN or is_pipe(name) else f"file:{Path(name).resolve()}"
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
def spooled_input(name: str, reporter: Reporter, folder: Path | None = None) -> Iterator[ByteSource]:
    """A copy of standard input (-) or of a pipe, which can be read several times; see `byte_streams.spooled`.

    Raises:
        InputError: if standard input is closed.
    """
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    if name != STDIN:
        with open(name, "rb") as pipe, spooled_source(pipe, name, folder) as source:
            yield source
        return
    if sys.stdin is None:  # closed by the parent process
        raise InputError("standard input is closed", "name a file, or redirect one to the command")
    if sys.stdin.isatty():
        reporter.note("reading lines from the terminal; press Ctrl-D to finish")
    with spooled_source(sys.stdin.buffer, "standard input", folder) as source:
        yield source
