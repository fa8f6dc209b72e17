"""Rows of Parquet files, read in bounded memory."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

from sentcompress.corpora.byte_streams import (
    LARGEST_RATIO,
    LINES_ALWAYS,
    UNPACKED_ALWAYS,
    ByteSource,
    open_bytes,
    spooled,
)
from sentcompress.corpora.delimited import listed, refuse_repeated
from sentcompress.corpora.parquet_pages import Chunk, PageError, read_chunk
from sentcompress.corpora.records import IDS, LABELS, Unreadable
from sentcompress.corpora.text_files import LONGEST_LINE
from sentcompress.errors import InputError, reason_of

# Rows read at a time, and the most bytes they can take; fewer rows if pages or dictionaries are large.
BATCH_ROWS = 10_000
BATCH_BYTES = 128 * 2**20
# Bytes of all pages that are needed to read a single row.
LARGEST_ROW = 384 * 2**20
# The footer describes the columns and row groups; in memory it takes 20 times its size.
LARGEST_FOOTER = 16 * 2**20
MOST_COLUMNS = 100_000
_BUFFER = 2**18


def parquet_rows(source: ByteSource, named: Collection[str] = ()) -> Iterator[tuple[int, Mapping[str, object]]]:
    """The columns of text, integers and booleans, row by row, with the row number.

    Floating-point numbers are read only in the columns of labels and ids, and in those that are `named`. A text that
    is not UTF-8 or is longer than LONGEST_LINE is returned as `Unreadable`.

    Raises:
        InputError: not a Parquet file, or damaged; none of these columns, or two of the same name; no rows; pages or a
            footer above the limits; far more rows or text than the size of the file suggests.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    with open_bytes(source) as stream, _seekable(stream, source.name) as file:
        size = _check_footer(file, source.name)
        try:
            table = pq.ParquetFile(
                file,
                pre_buffer=False,
                buffer_size=_BUFFER,
                thrift_string_size_limit=LARGEST_FOOTER,
                thrift_container_size_limit=MOST_COLUMNS,
            )
            reading = _Reading(source.name, file, size, table, named)
            for names, columns in reading.batches():
                for values in zip(*columns, strict=True):
                    number += 1
                    yield number, dict(zip(names, values, strict=True))
        except PageError as error:
            raise InputError(f"{source.name} cannot be read: {error}", "write the file again") from None
        except UnicodeDecodeError:
            raise InputError(f"{source.name} has a column whose name is not UTF-8", "rename the column") from None
        except (pa.ArrowException, OSError, OverflowError, MemoryError) as error:
            reason = reason_of(error)
            raise InputError(f"{source.name} is damaged or not a Parquet file ({reason})", "write it again") from None
    if number == 0:
        raise InputError(f"{source.name} has no rows", "give a file with at least one row")


class _Reading:
    """An open file; counts the rows and bytes that were read from it."""

    def __init__(self, name: str, file: BinaryIO, size: int, table: Any, named: Collection[str]) -> None:
        self._name, self._file, self._size, self._table = name, file, size, table
        self._columns = self._plain_columns(named)
        self._rows = self._bytes = 0

    def batches(self) -> Iterator[tuple[Sequence[str], list[list[object]]]]:
        """The names of the columns, and the values of each."""
        metadata = self._table.metadata
        prefixes = tuple(f"{name}." for name in self._columns)
        paths = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
        # If a structure is requested by name, pyarrow reads all columns inside it.
        places = [place for place, path in enumerate(paths) if path in self._columns or f"{path}.".startswith(prefixes)]
        packed = 0
        for group in range(metadata.num_row_groups):
            described = metadata.row_group(group)
            chunks = [described.column(place) for place in places]
            packed += sum(chunk.total_compressed_size for chunk in chunks)
            if packed > self._size:
                raise PageError("its columns are larger than the file itself")
            rows = self._rows_at_a_time([read_chunk(self._file, chunk) for chunk in chunks])
            for batch in self._table.iter_batches(
                batch_size=rows, row_groups=[group], columns=self._columns, use_threads=False
            ):
                self._check_rows(batch.num_rows)
                yield batch.schema.names, [self._values(column) for column in batch.columns]

    def _plain_columns(self, named: Collection[str]) -> list[str]:
        """The columns that are read: text, integers, booleans and known numbers, not vectors or structures."""
        import pyarrow.types as types

        known = {name.casefold() for name in (*LABELS, *IDS, *named)}

        def is_plain(kind: Any) -> bool:
            if types.is_dictionary(kind):
                return is_plain(kind.value_type)
            read = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean)
            return any(test(kind) for test in read)

        def is_known(field: Any) -> bool:
            # pandas stores integers as floating-point numbers if some are missing.
            return field.name.casefold() in known and bool(types.is_floating(field.type))

        schema = self._table.schema_arrow
        plain = [field.name for field in schema if is_plain(field.type) or is_known(field)]
        if not plain:
            raise InputError(f"{self._name} has no column of text", f"its columns: {listed(schema.names)}")
        refuse_repeated(self._name, schema.names)
        return plain

    def _rows_at_a_time(self, chunks: Sequence[Chunk]) -> int:
        rows = BATCH_ROWS
        while rows > 1 and sum(chunk.largest_window(rows) for chunk in chunks) > BATCH_BYTES:
            rows //= 2
        if rows == 1 and (needed := sum(chunk.largest_window(1) for chunk in chunks)) > LARGEST_ROW:
            raise PageError(f"a row needs pages of {needed} bytes in total, above the limit of {LARGEST_ROW}")
        return rows

    def _check_rows(self, count: int) -> None:
        self._rows += count
        if self._rows > max(LINES_ALWAYS, self._size):
            self._refuse(f"{LINES_ALWAYS} rows, and more rows than it has bytes")

    def _values(self, column: Any) -> list[object]:
        import pyarrow.types as types

        kind = column.type
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            return column.to_pylist()  # type: ignore[no-any-return]
        if types.is_dictionary(kind):
            # Equal values share memory in a dictionary, but not as Python strings.
            column = column.dictionary.take(column.indices)
        self._bytes += column.nbytes
        if self._bytes > max(UNPACKED_ALWAYS, LARGEST_RATIO * self._size):
            self._refuse(f"{UNPACKED_ALWAYS // 2**20} MiB and {LARGEST_RATIO} times its size")
        if column.nbytes <= LONGEST_LINE:
            try:
                return column.to_pylist()  # type: ignore[no-any-return]
            except UnicodeDecodeError:
                pass
        return [_value(scalar) for scalar in column]

    def _refuse(self, what: str) -> None:
        raise InputError(f"{self._name} decompresses to more than {what}", "if you trust it, convert it to .jsonl")


def _value(scalar: Any) -> object:
    """The value as text or number; `Unreadable` if it is too long or not UTF-8."""
    held = scalar.as_buffer() if hasattr(scalar, "as_buffer") else None
    if held is not None and held.size > LONGEST_LINE:
        return Unreadable(f"is longer than {LONGEST_LINE} bytes")
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return Unreadable("is not UTF-8")


def _check_footer(file: BinaryIO, name: str) -> int:
    """Check the length of the footer, which is in the last 8 bytes before `PAR1`; return the size of the file."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 8))
    length = int.from_bytes(file.read(4), "little")
    file.seek(0)
    if length > LARGEST_FOOTER:
        message = f"{name} is damaged or not a Parquet file, or its footer is larger than {LARGEST_FOOTER} bytes"
        raise InputError(message, "write it again, with fewer row groups")
    return size


@contextmanager
def _seekable(stream: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """Parquet is read from its end, so compressed streams are unpacked to a temporary file first."""
    if stream.seekable() and isinstance(getattr(stream, "raw", None), io.FileIO):
        yield stream
        return
    with spooled(stream, name) as file:
        yield file
