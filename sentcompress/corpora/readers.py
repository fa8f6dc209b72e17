"""Records of files of every format that users bring, as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sentcompress.corpora.columns import listed, refuse_repeated
from sentcompress.corpora.delimited import plain_rows, quoted_rows
from sentcompress.corpora.formats import find_format
from sentcompress.corpora.parquet_rows import parquet_rows
from sentcompress.corpora.records import BadRecordError, Record, Relation, record_maker
from sentcompress.corpora.text_files import BadRecords, Readable, Source, as_source, open_lines
from sentcompress.documents import parse_json
from sentcompress.errors import InputError


@dataclass(frozen=True)
class ReadOptions:
    """How files are to be read.

    A format for all of them, the columns that hold sentences, the part of a data set, the column of the domain.
    """

    format: str | None = None
    columns: tuple[str, ...] = ()
    split: str = "train"
    domain: str | None = None


def read_records(
    readable: Readable, options: ReadOptions | None = None, bad: BadRecords | None = None
) -> Iterator[Record]:
    """The records of one file, in order.

    Raises:
        InputError: for whatever is wrong with the file; faults of single lines go through `bad`.
    """
    source = as_source(readable)
    options = options or ReadOptions()
    bad = bad or BadRecords()
    format_name = find_format(source, options.format)
    if format_name == "text":
        if options.columns or options.domain:
            flag = "--column" if options.columns else "--domain"
            raise InputError(f"{source.name} is plain text and has no columns", f"leave out {flag}, or give --format")
        for _, line in open_lines(source, bad=bad):
            yield Record((line,), Relation.UNRELATED)
        return
    yield from records_of(source.name, _rows_of(format_name, source, bad), options, bad)


def read_table(
    readable: Readable, format_name: str | None = None, bad: BadRecords | None = None
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The rows of a file with named columns, and their numbers, as they stand.

    Raises:
        InputError: for whatever is wrong with the file, plain text included; faults of single lines go through `bad`.
    """
    source = as_source(readable)
    found = find_format(source, format_name)
    if found == "text":
        raise InputError(f"{source.name} has no columns that are known", "name it .csv, .tsv, .jsonl or .parquet")
    return _rows_of(found, source, bad or BadRecords())


def _rows_of(format_name: str, source: Source, bad: BadRecords) -> Iterator[tuple[int, Mapping[str, object]]]:
    if format_name == "jsonl":
        return _json_rows(source, bad)
    if format_name == "parquet":
        return parquet_rows(source)
    rows = quoted_rows(source, bad=bad) if format_name == "csv" else plain_rows(source, bad=bad)
    return _delimited_rows(source, rows, bad)


def records_of(
    name: str, rows: Iterator[tuple[int, Mapping[str, object]]], options: ReadOptions, bad: BadRecords
) -> Iterator[Record]:
    """The records of numbered rows; `name` is what errors call the place they come from."""
    make = record_maker(name, options.columns, options.split, options.domain)
    others: set[str] = set()
    found = False
    for number, row in rows:
        try:
            record = make(row)
        except BadRecordError as error:
            bad.add(f"{name}, line {number}: {error}")
            continue
        if record is None:
            others.add(str(row.get("split")))
            continue
        found = True
        yield record
    if others and not found:
        raise InputError(f"{name} has no rows of split {options.split!r}", f"splits there: {listed(sorted(others))}")


def _json_rows(source: Source, bad: BadRecords) -> Iterator[tuple[int, Mapping[str, object]]]:
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
            bad.add(f"{source.name}, line {number}: a JSON {type(row).__name__}, not an object")


def _delimited_rows(
    source: Source, rows: Iterator[tuple[int, list[str]]], bad: BadRecords
) -> Iterator[tuple[int, Mapping[str, object]]]:
    _, header = next(rows, (0, []))
    refuse_repeated(source.name, header)
    rowless = True
    for number, row in rows:
        rowless = False
        if len(row) > len(header):
            bad.add(f"{source.name}, line {number}: {len(row)} fields, the header has {len(header)}")
            continue
        # A row may be short (SNLI leaves out empty labels at the end); a column that is needed is missed later.
        yield number, dict(zip(header, row, strict=False))
    if rowless and bad.count == 0:
        raise InputError(f"{source.name} has a header and no rows", f"columns there: {listed(header)}")
