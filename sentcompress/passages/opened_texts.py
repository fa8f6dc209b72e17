"""Opens the texts that `encode` encodes, as they are or cut into passages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sentcompress.commands.encode import NPY, Params
from sentcompress.commands.shared import STDIN
from sentcompress.corpora.byte_streams import ByteSource, as_source
from sentcompress.corpora.document_files import find_document_files
from sentcompress.corpora.identified_texts import IdentifiedTexts, identified_texts, refuse_passages, texts_of_folder
from sentcompress.corpora.inputs import is_pipe, spooled_input
from sentcompress.corpora.readers import ReadOptions
from sentcompress.errors import InputError
from sentcompress.passages.cutting import passages_of
from sentcompress.progress import Reporter
from sentcompress.store import WorkDirectory


@contextmanager
def open_texts(params: Params, work: WorkDirectory, reporter: Reporter) -> Iterator[IdentifiedTexts]:
    """The texts of standard input, a pipe, a file or a folder, which can be read twice: to count and to encode them.

    Raises:
        InputError: if they cannot be read, or the options do not go with them.
    """
    if params.lines == STDIN or is_pipe(params.lines):
        with spooled_input(params.lines, reporter) as source:
            yield _of_source(source, params)
    elif Path(params.lines).is_dir():
        yield _of_folder(params, work, reporter)
    else:
        yield _of_source(as_source(params.lines), params)


def _of_source(source: ByteSource, params: Params) -> IdentifiedTexts:
    return identified_texts(source, _options(params), passages_of if params.passages else None, _skipping(params))


def _of_folder(params: Params, work: WorkDirectory, reporter: Reporter) -> IdentifiedTexts:
    folder = Path(params.lines)
    if params.format is not None:
        raise InputError(f"{folder} is a folder, and `format` is that of a file", "leave out `format`")
    found = find_document_files(folder, work.path)
    if params.passages:
        refuse_passages(folder, found)
    if unread := found.unread(folder):
        reporter.note(unread)
    return texts_of_folder(folder, found, _options(params), passages_of if params.passages else None, _skipping(params))


def _skipping(params: Params) -> bool | None:
    """Whether lines that cannot be read are skipped; None if they cannot be, because the output has no ids."""
    return params.skip_bad if params.output.suffix != NPY else None


def _options(params: Params) -> ReadOptions:
    return ReadOptions(params.format, params.column, id_column=params.id_column)
