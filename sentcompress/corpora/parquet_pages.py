"""The decompressed size of the pages of a Parquet file, read from the page headers.

The totals in the file's footer can be wrong, but a page never decompresses to more bytes than its own header says. The
headers are Thrift structures in the compact protocol:
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

# Bytes per page. Most writers use pages of 1 MiB; those of DuckDB can have 100 MB.
LARGEST_PAGE = 128 * 2**20
# Most headers take 30 to 100 bytes; they can contain the smallest and the largest value.
_FIRST_READ = 512
_LARGEST_HEADER = 2**20
_DICTIONARY = 2
_DEEPEST = 8
# Field numbers of PageHeader, and of the headers of data pages within it.
_TYPE, _UNPACKED, _PACKED, _DATA, _DATA_2 = 1, 2, 3, 5, 8
_VALUES = 1
# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _STRUCT = 1, 2, 3, 7, 8, 12
_VARINTS = (4, 5, 6)
_LISTS = (9, 10)


class PageError(Exception):
    """An invalid page header, or a page that is too large; the message says which."""


@dataclass(frozen=True)
class Page:
    """A page: its number of values (0 for a dictionary) and its decompressed size in bytes."""

    is_dictionary: bool
    values: int
    size: int


@dataclass(frozen=True)
class Chunk:
    """The pages of one column in a row group, and the size of its dictionary in bytes."""

    dictionary: int
    pages: tuple[Page, ...]

    def largest_window(self, rows: int) -> int:
        """The most bytes that `rows` consecutive values can take, if each is as large as the whole dictionary.

        Pages without values count too, since they are decompressed like the others.
        """
        largest = size = first = held = 0
        for page in self.pages:
            size, held = size + page.size, held + page.values
            # Drop pages that a window ending in the current page cannot reach.
            while first < len(self.pages) and held - self.pages[first].values - page.values >= rows:
                size, held = size - self.pages[first].size, held - self.pages[first].values
                first += 1
            largest = max(largest, size)
        return largest + rows * self.dictionary


def read_chunk(file: BinaryIO, column: Any) -> Chunk:
    """The pages of a column chunk; only their headers are read.

    Args:
        file: the Parquet file.
        column: the chunk's `ColumnChunkMetaData`.

    Raises:
        PageError: invalid headers, or a page above LARGEST_PAGE.
    """
    pages = list(_pages(file, column))
    dictionary = max((page.size for page in pages if page.is_dictionary), default=0)
    return Chunk(dictionary, tuple(page for page in pages if not page.is_dictionary))


def _pages(file: BinaryIO, column: Any) -> Iterator[Page]:
    start = column.data_page_offset
    if column.has_dictionary_page and 0 < column.dictionary_page_offset < start:
        start = column.dictionary_page_offset
    if start < 0 or column.total_compressed_size < 0:
        raise PageError("a column has a negative size")
    seen, end = 0, start + column.total_compressed_size
    while seen < column.num_values and start < end:
        fields, length = _header(file, start)
        kind, size, packed = (fields.get(key) for key in (_TYPE, _UNPACKED, _PACKED))
        if not isinstance(size, int) or not isinstance(packed, int) or size < 0 or packed < 0:
            raise PageError("a page has no size")
        if size > LARGEST_PAGE:
            raise PageError(f"a page has {size} bytes, above the limit of {LARGEST_PAGE}")
        inner = fields.get(_DATA, fields.get(_DATA_2))
        values = inner.get(_VALUES, 0) if isinstance(inner, dict) else 0
        yield Page(kind == _DICTIONARY, values if isinstance(values, int) and values > 0 else 0, size)
        seen += max(values, 0) if isinstance(values, int) else 0
        start += length + packed


def _header(file: BinaryIO, start: int) -> tuple[dict[int, Any], int]:
    """The fields of the page header at an offset in the file, and its length in bytes."""
    size = _FIRST_READ
    while True:
        file.seek(start)
        reader = _Compact(file.read(size))
        try:
            return reader.struct(), reader.place
        except IndexError:
            if size >= _LARGEST_HEADER or len(reader.content) < size:
                raise PageError("a broken page header") from None
            size *= 8


class _Compact:
    """Reads structures in the compact protocol; IndexError if the content ends too early."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Field number -> value for integers and structures; None for other types."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._integer()
            fields[number] = self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise PageError("a broken page header")
        if kind in (_TRUE, _FALSE):
            return None
        if kind in _VARINTS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in _LISTS:
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            if count > len(self.content):
                raise IndexError
            for _ in range(count):
                self._value(_BYTE if head & 15 in (_TRUE, _FALSE) else head & 15, depth + 1)
            return None
        lengths = {_BYTE: 1, _DOUBLE: 8}
        if kind != _BINARY and kind not in lengths:
            raise PageError("a broken page header")
        length = lengths[kind] if kind in lengths else self._varint()
        self.place += length
        if self.place > len(self.content):
            raise IndexError
        return None

    def _byte(self) -> int:
        found = self.content[self.place]
        self.place += 1
        return found

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise PageError("a broken page header")
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
