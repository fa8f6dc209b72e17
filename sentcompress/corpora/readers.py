"""Records of files of every format that users bring, as a stream."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from sentcompress.corpora.formats import find_format
from sentcompress.corpora.records import BadRecordError, Record, Relation, record_maker
from sentcompress.corpora.text_files import BadRecords, Readable, Source, as_source, open_bytes, open_lines, read_rows
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
    rows = {"jsonl": _json_rows, "parquet": _parquet_rows}.get(format_name)
    return rows(source, bad) if rows else _delimited_rows(source, "," if format_name == "csv" else "\t", bad)


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
        raise InputError(f"{name} has no rows of split {options.split!r}", f"splits there: {', '.join(sorted(others))}")


def _json_rows(source: Source, bad: BadRecords) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in open_lines(source, bad=bad):
        if not line or line.isspace():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            bad.add(f"{source.name}, line {number}: broken JSON ({error})")
            continue
        except RecursionError:
            bad.add(f"{source.name}, line {number}: JSON nested too deeply")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            bad.add(f"{source.name}, line {number}: a JSON {type(row).__name__}, not an object")


def _delimited_rows(source: Source, delimiter: str, bad: BadRecords) -> Iterator[tuple[int, Mapping[str, object]]]:
    rows = read_rows(source, delimiter=delimiter, bad=bad)
    _, header = next(rows, (0, []))
    repeated = {column for column in header if column and header.count(column) > 1}
    if repeated:
        raise InputError(f"{source.name} has columns of the same name: {', '.join(sorted(repeated))}", "rename them")
    rowless = True
    for number, row in rows:
        rowless = False
        if len(row) > len(header):
            bad.add(f"{source.name}, line {number}: {len(row)} fields, the header has {len(header)}")
            continue
        # A row may be short (SNLI leaves out empty labels at the end); a column that is needed is missed later.
        yield number, dict(zip(header, row, strict=False))
    if rowless and bad.count == 0:
        raise InputError(f"{source.name} has a header and no rows", f"columns there: {', '.join(header)}")


def _parquet_rows(source: Source, bad: BadRecords) -> Iterator[tuple[int, Mapping[str, object]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open_bytes(source) as stream, _seekable(stream) as file:
        try:
            table = pq.ParquetFile(file)
            number = 0
            for batch in table.iter_batches(batch_size=10_000, columns=_plain_columns(table.schema_arrow)):
                names = batch.schema.names
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    number += 1
                    yield number, dict(zip(names, values, strict=True))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{source.name} is no Parquet file that can be read ({reason})") from None
        except OSError as error:
            raise InputError(f"{source.name} is damaged ({str(error).splitlines()[0]})") from None
    if number == 0:
        raise InputError(f"{source.name} has no rows")


def _plain_columns(schema: Sequence[object]) -> list[str]:
    """The columns worth reading: text and numbers, not vectors or structures."""
    import pyarrow.types as types

    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_dictionary)
    return [field.name for field in schema if any(test(field.type) for test in tests)]  # type: ignore[attr-defined]


@contextmanager
def _seekable(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Parquet is read from its end, so compressed streams are unpacked to a temporary file first."""
    if stream.seekable() and isinstance(getattr(stream, "raw", None), io.FileIO):
        yield stream
        return
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file)
        file.seek(0)
        yield file
