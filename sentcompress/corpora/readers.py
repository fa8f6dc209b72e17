"""Files of every format as rows and records: jsonl, csv, tsv, Parquet and plain text."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from sentcompress.corpora.byte_streams import ByteSource, Readable, as_source, open_bytes
from sentcompress.corpora.column_names import with_known_names
from sentcompress.corpora.delimited import (
    SEPARATOR,
    listed,
    quoted_rows,
    refuse_repeated,
    tabbed_rows,
    without_separator_line,
)
from sentcompress.corpora.markup import HTML
from sentcompress.corpora.parquet_rows import parquet_rows
from sentcompress.corpora.records import LAYOUTS, BadRecordError, Record, Relation, kind_of, record_maker
from sentcompress.corpora.text_files import BadRecords, open_lines, refuse_foreign
from sentcompress.errors import InputError
from sentcompress.json_documents import parse_json

FORMATS = ("jsonl", "csv", "tsv", "parquet", "text")
# Extension -> format. The extensions of plain text are apart: such a file can turn out to have another format.
_EXTENSIONS = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "jsonl",
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "parquet": "parquet",
    "pq": "parquet",
}
FILE_EXTENSIONS = ("txt", "text", *_EXTENSIONS)
_PARQUET_MAGIC = b"PAR1"
_HEAD = 65536
Made = TypeVar("Made")
_QUOTED = re.compile('"[^"]*"')


@dataclass(frozen=True)
class ReadOptions:
    """How files are read.

    Attributes:
        format: one of FORMATS for all of them; None to tell it from name and content.
        columns: the columns with sentences; empty for a known layout.
        id_column: the column with the ids of documents; None to find it by name.
        documents: whether rows are read as documents, and those with a text of their own are taken from any split.
        joined: whether the columns make one text instead of a sentence each.
        split: the rows to take from a data set with several splits.
        every_split: whether the rows of all splits are read as documents, whatever `split` is.
        domain: the column with the domain of each row.
        text_as: what counts as one document in plain text, one of `document_files.TEXT_UNITS`; None: chosen from the
            file.
    """

    format: str | None = None
    columns: tuple[str, ...] = ()
    split: str = "train"
    domain: str | None = None
    joined: bool = False
    text_as: str | None = None
    id_column: str | None = None
    documents: bool = False
    every_split: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that the user names."""
        return (*self.columns, *(name for name in (self.id_column, self.domain) if name))


def read_records(
    readable: Readable, options: ReadOptions | None = None, bad: BadRecords | None = None
) -> Iterator[Record]:
    """The records of one file, in order.

    Raises:
        InputError: if the file cannot be read; faults of single lines go through `bad`.
    """
    source = as_source(readable)
    options = options or ReadOptions()
    bad = bad or BadRecords()
    format_name = find_format(source, options.format)
    if format_name == "text":
        if options.columns or options.domain:
            flag = "`column`" if options.columns else "`domain`"
            raise InputError(f"{source.name} is plain text and has no columns", (f"leave out {flag}", "give `format`"))
        for _, line in open_lines(source, bad=bad):
            yield Record((line,), Relation.UNRELATED)
        return
    yield from records_of(source.name, rows_of(format_name, source, bad, options.named), options, bad)


def read_table(
    readable: Readable,
    format_name: str | None = None,
    bad: BadRecords | None = None,
    named: Collection[str] = (),
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The rows of a file with named columns, with their numbers; the arguments are those of `rows_of`.

    Raises:
        InputError: if the file cannot be read or is plain text; faults of single lines go through `bad`.
    """
    source = as_source(readable)
    found = find_format(source, format_name)
    if found == "text":
        raise InputError(f"{source.name} has no known columns", "name it .csv, .tsv, .jsonl or .parquet")
    return rows_of(found, source, bad or BadRecords(), named)


def records_of(
    name: str, rows: Iterator[tuple[int, Mapping[str, object]]], options: ReadOptions, bad: BadRecords
) -> Iterator[Record]:
    """The records of numbered rows; errors call their origin `name`."""
    make = record_maker(name, options.columns, options.split, options.domain, options.joined)
    yield from made_of_rows(name, rows, lambda _, row: make(row), options.split, bad)


def made_of_rows(
    name: str,
    rows: Iterable[tuple[int, Mapping[str, object]]],
    make: Callable[[int, Mapping[str, object]], Made | None],
    split: str,
    bad: BadRecords,
) -> Iterator[Made]:
    """What `make` gives for numbered rows: None for a row of another split, which `bad` counts as it does bad rows.

    Raises:
        InputError: if all rows are of other splits.
    """
    others: set[str] = set()
    found = False
    for number, row in rows:
        try:
            made = make(number, row)
        except BadRecordError as error:
            bad.add(f"{name}, line {number}: {error}", error.hint)
            continue
        if made is None:
            others.add(str(row.get("split")))
            bad.other_splits += 1
            continue
        found = True
        yield made
    if others and not found:
        raise _no_rows_of_split(name, split, others)


def _no_rows_of_split(name: str, split: str, others: Iterable[str]) -> InputError:
    """The error for a table of which all rows are of other splits."""
    return InputError(f"{name} has no rows of split {split!r}", f"its splits: {listed(sorted(others))}")


def find_format(source: ByteSource, requested: str | None) -> str:
    """One of FORMATS: the one requested, else the one that name and content agree on.

    Raises:
        InputError: if the content clearly has another format than the name says, or the file is an HTML page, which
            only readers of documents read.
    """
    if source.extension in HTML and not requested:
        raise InputError(
            f"{source.name} is an HTML page, which is not lines of text",
            "make text of it: sentcompress split-documents reads pages and writes their passages",
        )
    head = _head(source)
    named = _EXTENSIONS.get(source.extension)
    is_parquet = head.startswith(_PARQUET_MAGIC)
    if (requested or named) == "parquet":
        if not is_parquet:
            raise InputError(
                f"{source.name} is not a Parquet file", ("rename it with the suffix of its format", "name its `format`")
            )
        return "parquet"
    if requested:
        return requested
    if is_parquet and named is None:
        return "parquet"
    refuse_foreign(source.name, head)
    looks = _looks_like(head)
    if named == "jsonl" and looks != "jsonl":
        raise _not_json_lines(source.name, _first_line(head).strip())
    if named:
        return named
    if looks == "jsonl" and source.extension == "txt":
        raise InputError(
            f"{source.name} is named as plain text but holds JSON",
            ("rename it to end in .jsonl", "choose `format` jsonl or `format` text"),
        )
    return looks


def _not_json_lines(name: str, first: str) -> InputError:
    """The error for a file named as JSON whose first line is no JSON object, with a command that converts it."""
    if first.startswith("["):
        what, items = "one JSON array", "'.[]'"
    elif first == "{":
        what, items = "a JSON object of several lines", "."
    else:
        return InputError(f"{name}, line 1: not JSON", ("give one JSON object per line", "name its `format`"))
    return InputError(
        f"{name}, line 1: {what}", f"write one JSON object per line, for example: jq -c {items} OLD > NEW.jsonl"
    )


def _head(source: ByteSource) -> bytes:
    """The first bytes of a file, at most _HEAD."""
    with open_bytes(source) as stream:
        return cast(io.BufferedReader, stream).peek(_HEAD)[:_HEAD]


def _first_line(head: bytes) -> str:
    return head.decode("utf-8", errors="replace").removeprefix("\ufeff").lstrip().partition("\n")[0].partition("\r")[0]


def _looks_like(head: bytes) -> str:
    """The format by the first line: an object is jsonl; a header of a known layout is tsv or csv; otherwise text."""
    line = _first_line(head)
    if line.startswith("{"):
        try:
            if isinstance(json.loads(line), dict):
                return "jsonl"
        except (ValueError, RecursionError):
            # A first record longer than the head cannot be parsed; sentences hardly ever begin like this.
            if line.startswith(('{"', "{ ")):
                return "jsonl"
    for name, delimiter in (("tsv", "\t"), ("csv", ",")):
        header = {field.strip('"').casefold() for field in line.split(delimiter)}
        if any({one.casefold() for one in layout.columns} <= header for layout in LAYOUTS if len(layout.columns) > 1):
            return name
    return "text"


def rows_of(
    format_name: str, source: ByteSource, bad: BadRecords, named: Collection[str] = ()
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The numbered rows of a file of any format but text, with `with_known_names`.

    Args:
        bad: what to do with lines that cannot be read.
        named: the names of columns that are looked for, besides known ones.
    """
    return with_known_names(_rows_as_written(format_name, source, bad, named), named)


def _rows_as_written(
    format_name: str, source: ByteSource, bad: BadRecords, named: Collection[str]
) -> Iterator[tuple[int, Mapping[str, object]]]:
    if format_name == "jsonl":
        return _json_rows(source, bad)
    if format_name == "parquet":
        return parquet_rows(source, named)
    if format_name == "csv":
        return _delimited_rows(source, without_separator_line(quoted_rows(source, csv_delimiter(source), bad)), bad)
    return _delimited_rows(source, tabbed_rows(source, bad), bad)


def csv_delimiter(source: ByteSource) -> str:
    """What separates the columns of a csv file, by its first line: what that line names, or else separates its header.

    A comma, if there is one outside quotes; else a semicolon, as where spreadsheets write decimal commas, or a tab.
    """
    first = _first_line(_head(source))
    if (named := SEPARATOR.fullmatch(first)) and named[1]:
        return named[1]
    header = _QUOTED.sub("", first)
    return next((one for one in ",;\t" if one in header), ",")


def _json_rows(source: ByteSource, bad: BadRecords) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in open_lines(source, bad=bad):
        if not line or line.isspace():
            continue
        try:
            row = parse_json(line, f"{source.name}, line {number}")
        except InputError as error:
            bad.add(error.message)
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            bad.add(f"{source.name}, line {number}: {kind_of(row)}, not a JSON object")


def _delimited_rows(
    source: ByteSource, rows: Iterator[tuple[int, list[str]]], bad: BadRecords
) -> Iterator[tuple[int, Mapping[str, object]]]:
    _, header = next(rows, (0, []))
    refuse_repeated(source.name, header)
    rowless = True
    for number, row in rows:
        rowless = False
        if len(row) > len(header):
            bad.add(f"{source.name}, line {number}: {len(row)} fields, the header has {len(header)}")
            continue
        # A row can be shorter (SNLI omits empty labels at the end); a column that is needed is reported later.
        yield number, dict(zip(header, row, strict=False))
    if rowless and bad.count == 0:
        raise InputError(f"{source.name} has a header and no rows", f"its columns: {listed(header)}")
