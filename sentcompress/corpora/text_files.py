"""Text files as users have them: plain, `.gz` or `.zst`, or standard input, read line by line or row by row.

Every fault becomes an `InputError` that names the file and the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from sentcompress.errors import InputError

STDIN = "-"
COMPRESSED = (".gz", ".zst")
# A "line" beyond this is a file of another format; reading on would only fill the memory.
LONGEST_LINE = 16 * 2**20
# What is wrong with a text that is not `is_encodable`.
HALF_A_CHARACTER = "holds half a character (a lone surrogate)"
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FOREIGN = (
    (b"PAR1", "a Parquet file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
)


@dataclass
class BadRecords:
    """What to do with a line that cannot be read: stop there, or skip it and count."""

    skip: bool = False
    count: int = 0
    first: str | None = field(default=None)

    def add(self, message: str, hint: str | None = None) -> None:
        """Count a bad line, or raise InputError with `message` when lines are not to be skipped."""
        if not self.skip:
            raise InputError(message, hint or "mend the line, or skip such lines where the command has --skip-bad")
        self.count += 1
        self.first = self.first or message


@dataclass(frozen=True)
class Source:
    """Something that can be read from its beginning, any number of times. `name` is what errors call it."""

    name: str
    open: Callable[[], BinaryIO]

    @property
    def extension(self) -> str:
        """The lower-case extension that tells the format: "csv" of `pairs.csv.gz`; empty for standard input."""
        return format_extension(self.name)


Readable = str | Path | Source


def format_extension(name: str | Path) -> str:
    """The lower-case extension without the dot, looking through `.gz` and `.zst`."""
    path = Path(name)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower().removeprefix(".")


def is_encodable(text: str) -> bool:
    """Whether a file can hold the text. JSON can write halves of characters, which no encoding has."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def as_source(readable: Readable) -> Source:
    """A path, or "-" for standard input, as a source. Standard input can be read only once."""
    if isinstance(readable, Source):
        return readable
    if str(readable) == STDIN:
        # A copy of the descriptor, so that closing this stream leaves the process its standard input.
        return Source("standard input", lambda: os.fdopen(os.dup(sys.stdin.fileno()), "rb"))
    path = Path(readable)
    return Source(str(path), lambda: _open_file(path))


@contextmanager
def open_bytes(readable: Readable) -> Iterator[BinaryIO]:
    """The content of a file as bytes, decompressed if it is gzip or zstd (seen by its first bytes).

    Raises:
        InputError: no such file, a folder, no permission, an empty file, broken compressed data.
    """
    source = as_source(readable)
    with source.open() as file, _faults_of(source.name):
        raw = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, file))
        head = raw.peek(8)[:8]
        if not head:
            raise InputError(f"{source.name} is empty", "give a file with at least one line")
        _check_suffix(source.name, head)
        if head.startswith(_GZIP_MAGIC):
            yield cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=raw))))
        elif head.startswith(_ZSTD_MAGIC):
            yield cast(BinaryIO, io.BufferedReader(_ZstdReader(raw), 2**20))
        else:
            yield cast(BinaryIO, raw)


def open_lines(
    readable: Readable, *, bad: BadRecords | None = None, encoding: str = "utf-8"
) -> Iterator[tuple[int, str]]:
    """Lines with their numbers (from 1), without line ends. A byte order mark is dropped.

    Args:
        readable: a path, "-" for standard input, or a `Source`.
        bad: what to do with lines that are not UTF-8; by default the first one is an error.
        encoding: utf-8, or latin-1, which takes any byte.

    Raises:
        InputError: what `open_bytes` raises; a binary file; a line that is not UTF-8; an endless line.
    """
    source = as_source(readable)
    bad = bad or BadRecords()
    with open_bytes(source) as stream:
        buffered = cast(io.BufferedReader, stream)
        refuse_foreign(source.name, buffered.peek(512)[:512])
        number = 0
        while line := buffered.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise InputError(f"{source.name}, line {number}: longer than {LONGEST_LINE} bytes", "is this text?")
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError as error:
                bad.add(
                    f"{source.name}, line {number}: not UTF-8 (byte {error.start + 1} of the line)",
                    "convert it, for instance: iconv -f latin1 -t utf-8",
                )
                continue
            if number == 1:
                text = text.removeprefix("\ufeff")
            yield number, text.rstrip("\r\n")
        if number == 0:
            raise InputError(f"{source.name} is empty", "give a file with at least one line")


def read_rows(
    readable: Readable, *, delimiter: str | None = None, bad: BadRecords | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Rows of a delimited file, with the number of the line that each ends on; the header, if any, is a row too.

    Comma-separated files are read with quoting (fields may hold commas, quotes and line ends), tab-separated
    ones without: there a quote is just a character. Blank lines are passed over.

    Args:
        delimiter: by default the extension decides: `.csv` or `.tsv`/`.tab`.

    Raises:
        InputError: what `open_lines` raises; an unknown extension; broken quoting.
    """
    source = as_source(readable)
    bad = bad or BadRecords()
    delimiter = delimiter or _delimiter_of(source)
    lines = open_lines(source, bad=bad)
    if delimiter != ",":
        for number, line in lines:
            if line:
                yield number, line.split(delimiter)
        return
    yield from _csv_rows(source, lines, bad)


def read_columns(
    readable: Readable,
    columns: Sequence[str],
    *,
    delimiter: str | None = None,
    bad: BadRecords | None = None,
) -> Iterator[tuple[int, list[str]]]:
    """The named columns, in that order, of a delimited file whose first row is a header.

    Raises:
        InputError: what `read_rows` raises; a column that is not there (lists those that are); a row too short.
    """
    source = as_source(readable)
    bad = bad or BadRecords()
    rows = read_rows(source, delimiter=delimiter, bad=bad)
    _, header = next(rows, (0, []))
    places = find_columns(source.name, columns, header)
    width = max(places, default=-1) + 1
    for number, row in rows:
        if len(row) < width:
            bad.add(f"{source.name}, line {number}: {len(row)} fields, the header has {len(header)}")
            continue
        yield number, [row[place] for place in places]


def find_columns(name: str, wanted: Sequence[str], header: Sequence[str]) -> list[int]:
    """Where the wanted columns stand in a header.

    Raises:
        InputError: if one is missing; its hint lists the columns that are there.
    """
    missing = [column for column in wanted if column not in header]
    if missing:
        there = ", ".join(header) if header else "none"
        plural = "s" if len(missing) > 1 else ""
        raise InputError(f"{name} has no column{plural} {', '.join(map(repr, missing))}", f"columns there: {there}")
    return [list(header).index(column) for column in wanted]


def refuse_foreign(name: str, head: bytes) -> None:
    """Raise InputError if the first bytes of what should be text are those of some other format."""
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            hint = "name it .parquet" if magic == b"PAR1" else "give text, csv, tsv, jsonl or parquet, in UTF-8"
            raise InputError(f"{name} is {what}, not UTF-8 text", hint)
    if b"\0" in head:
        raise InputError(f"{name} is a binary file, not text", "give text, csv, tsv, jsonl or parquet")


def _csv_rows(source: Source, lines: Iterator[tuple[int, str]], bad: BadRecords) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_LINE)
    last = 0

    def numbered() -> Iterator[str]:
        nonlocal last
        for number, line in lines:
            last = number
            yield line + "\n"

    rows = csv.reader(numbered(), strict=True)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            bad.add(f"{source.name}, line {last}: broken csv ({error})")
            continue
        if row:
            yield last, row


def _delimiter_of(source: Source) -> str:
    known = {"csv": ",", "tsv": "\t", "tab": "\t"}
    if source.extension not in known:
        raise InputError(f"{source.name}: cannot tell how its columns are separated", "name it .csv or .tsv")
    return known[source.extension]


def _check_suffix(name: str, head: bytes) -> None:
    expected = {".gz": (_GZIP_MAGIC, "gzip"), ".zst": (_ZSTD_MAGIC, "zstd")}.get(Path(name).suffix.lower())
    if expected and not head.startswith(expected[0]):
        raise InputError(f"{name} is not {expected[1]} data", "its name says so; rename it if it is not compressed")


def _open_file(path: Path) -> BinaryIO:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder", "give a file")
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"no such file: {path}", "check the path") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check its permissions") from None


@contextmanager
def _faults_of(name: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"{name}: broken compressed data ({reason})", "fetch or compress the file again") from None


class _ZstdReader(io.RawIOBase):
    """A zstd stream of one or more frames. Unlike the library's own reader, it notices a truncated file."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decompressor = zstandard.ZstdDecompressor()
        self._frame = self._decompressor.decompressobj()
        self._inside = False
        self._waiting = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        while not self._ready:
            chunk = self._waiting or self._stream.read(2**17)
            if not chunk:
                if self._inside:
                    raise EOFError("the file ends in the middle of a frame")
                return 0
            self._ready = memoryview(self._frame.decompress(chunk))
            self._inside, self._waiting = not self._frame.eof, b""
            if self._frame.eof:
                self._waiting = self._frame.unused_data
                self._frame = self._decompressor.decompressobj()
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size
