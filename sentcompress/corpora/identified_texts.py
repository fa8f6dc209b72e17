"""Texts with their ids from a file of any format, in order, read as often as needed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.byte_streams import ByteSource, as_source
from sentcompress.corpora.collection_folders import corpus_file, rows_of
from sentcompress.corpora.delimited import listed
from sentcompress.corpora.readers import find_format, read_table
from sentcompress.corpora.records import BadRecordError, as_text
from sentcompress.corpora.text_files import HALF_A_CHARACTER, is_encodable, open_lines
from sentcompress.errors import InputError

IDS = ("_id", "id")
TEXT, TITLE = "text", "title"
# Columns that hold the text of a row if there is no `text`.
OTHER_TEXTS = ("sentence", "document", "passage", "content", "body")
IdentifiedText = tuple[str, str]


@dataclass(frozen=True)
class IdentifiedTexts:
    """Texts of one file, in order.

    Attributes:
        source: the file.
        read: starts reading it: yields (id, text).
        named: whether the file has ids; otherwise they are the row numbers from 0.
    """

    source: ByteSource
    read: Callable[[], Iterator[IdentifiedText]]
    named: bool

    def digest(self) -> str:
        """SHA-256 of the file as it is now."""
        with self.source.open() as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def identified_texts(source: ByteSource, column: str | None = None, format_name: str | None = None) -> IdentifiedTexts:
    """The texts of a file: every line of plain text, also empty ones, or every row of a table.

    The id of a row is its column `_id` or `id`. Its text is the named column; otherwise `title`, a space and `text`,
    stripped, as eval-retrieval joins them, or a column of another usual name.

    Raises:
        InputError: if the file cannot be read, has no such column, or no column is known to hold text.
    """
    found = find_format(source, format_name)
    if found == "text":
        if column is not None:
            raise InputError(f"{source.name} is plain text and has no columns", "leave out `column`, or give `format`")
        return IdentifiedTexts(source, lambda: ((str(number - 1), line) for number, line in open_lines(source)), False)
    first = next(iter(read_table(source, found)))[1]
    text_of = _text_reader(source.name, list(first), column)
    id_column = next((name for name in IDS if name in first), None)

    def read() -> Iterator[IdentifiedText]:
        for place, (number, row) in enumerate(read_table(source, found)):
            try:
                one = str(place) if id_column is None else as_text(row.get(id_column), repr(id_column)).strip()
                text = text_of(row)
            except BadRecordError as error:
                raise InputError(f"{source.name}, line {number}: {error}", "fix the line") from None
            if not one:
                raise InputError(f"{source.name}, line {number}: no {id_column!r}", "give every row an id")
            if not is_encodable(one + text):
                raise InputError(f"{source.name}, line {number}: {HALF_A_CHARACTER}", "fix the line")
            yield one, text

    return IdentifiedTexts(source, read, id_column is not None)


def texts_of_folder(folder: Path) -> IdentifiedTexts:
    """The documents of a collection in BEIR's or MS MARCO's layout.

    Raises:
        InputError: if the folder has no corpus.
    """
    corpus = corpus_file(folder)
    return IdentifiedTexts(as_source(corpus), lambda: rows_of(corpus), True)


def _text_reader(name: str, there: list[str], column: str | None) -> Callable[[Mapping[str, object]], str]:
    if column is not None and column not in there:
        raise InputError(f"{name} has no column {column!r}", f"columns there: {listed(there)}")
    if column is None and TEXT in there:
        return lambda row: f"{_value(row, TITLE)} {_value(row, TEXT)}".strip()
    chosen = column or next((other for other in OTHER_TEXTS if other in there), None)
    if chosen is None:
        raise InputError(f"{name}: cannot tell which column holds the text", f"name one of {listed(there)} `column`")
    return lambda row: _value(row, chosen).strip()


def _value(row: Mapping[str, object], column: str) -> str:
    value = row.get(column)
    if value is not None and not isinstance(value, str):
        raise BadRecordError(f"{column!r} is not text")
    return value or ""
