"""Text files as users have them: plain, `.gz` or `.zst`, or standard input, read line by line.

Every fault becomes an `InputError` that names the file and the line.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import AnyStr, BinaryIO, cast

from sentcompress.corpora.unpacking import GZIP_MAGIC, is_zstd, unpacked
from sentcompress.errors import InputError

STDIN = "-"
COMPRESSED = (".gz", ".zst")
# Bytes. A longer line or value means that the file has another format; reading on would only fill the memory.
LONGEST_LINE = 16 * 2**20
# What is wrong with a text that is not `is_encodable`.
HALF_A_CHARACTER = "holds half a character (a lone surrogate)"
_BLOCK = 2**18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
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
            raise InputError(message, hint or "fix the line, or skip such lines where the command has --skip-bad")
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
    with source.open() as file:
        raw = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, file))
        head = raw.peek(8)[:8]
        if not head:
            raise InputError(f"{source.name} is empty", "give a file with at least one line")
        _check_suffix(source.name, head)
        with unpacked(raw, source.name) as stream:
            yield stream


def open_lines(
    readable: Readable, *, bad: BadRecords | None = None, encoding: str = "utf-8"
) -> Iterator[tuple[int, str]]:
    """Lines with their numbers (from 1), without line ends. A byte order mark is dropped.

    A line ends with LF, CR LF or CR, as with Python's universal newlines.

    Args:
        readable: a path, "-" for standard input, or a `Source`.
        bad: what to do with lines that are not UTF-8; by default the first one is an error.
        encoding: utf-8, or latin-1, which takes any byte.

    Raises:
        InputError: what `open_bytes` raises; a binary file; a line that is not UTF-8; one longer than LONGEST_LINE.
    """
    source = as_source(readable)
    bad = bad or BadRecords()
    number = 0
    with open_bytes(source) as stream:
        refuse_foreign(source.name, cast(io.BufferedReader, stream).peek(512)[:512])
        try:
            for block in _blocks_of_lines(stream):
                first = number + 1
                if number == 0 and encoding == "utf-8":
                    block = block.removeprefix(_BYTE_ORDER_MARK)
                try:
                    text = block.decode(encoding)
                except UnicodeDecodeError:
                    for number, raw_line in enumerate(_split(block, b"\r", b"\n"), first):
                        line = _decoded(raw_line, f"{source.name}, line {number}", encoding, bad)
                        if line is not None:
                            yield number, line
                else:
                    for number, line in enumerate(_split(text, "\r", "\n"), first):
                        yield number, line
        except _LineTooLongError:
            message = f"{source.name}, line {number + 1}: longer than {LONGEST_LINE} bytes"
            raise InputError(message, "is this text?") from None
    if number == 0:
        raise InputError(f"{source.name} is empty", "give a file with at least one line")


class _LineTooLongError(Exception):
    """The line after the blocks read so far is longer than LONGEST_LINE."""


def _blocks_of_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The stream in blocks of complete lines, each of about _BLOCK bytes or one longer line."""
    size = min(_BLOCK, LONGEST_LINE)
    begun: list[bytes] = []
    length = 0
    while block := stream.read(size):
        # A CR at the end of the block can be the first half of CR LF.
        stop = block.rfind(b"\n") + 1 or block.rfind(b"\r", 0, len(block) - 1) + 1
        # Below LONGEST_LINE, there is no need to look for a line end.
        if length + len(block) > LONGEST_LINE and length + _first_line_end(block) > LONGEST_LINE:
            raise _LineTooLongError
        if stop:
            yield b"".join((*begun, block[:stop]))
            begun, length = [], 0
        begun.append(block[stop:])
        length += len(block) - stop
    if length:
        yield b"".join(begun)


def _first_line_end(block: bytes) -> int:
    """The length of the first line, or of the whole block if no line ends in it."""
    ends = [place for place in (block.find(b"\n"), block.find(b"\r")) if place >= 0]
    return min(ends, default=len(block))


def _split(block: AnyStr, carriage_return: AnyStr, line_feed: AnyStr) -> list[AnyStr]:
    """The lines of a block, without line ends."""
    if carriage_return in block:
        block = block.replace(carriage_return + line_feed, line_feed).replace(carriage_return, line_feed)
    lines = block.split(line_feed)
    if not lines[-1]:
        del lines[-1]
    return lines


def _decoded(line: bytes, place: str, encoding: str, bad: BadRecords) -> str | None:
    try:
        return line.decode(encoding)
    except UnicodeDecodeError as error:
        bad.add(
            f"{place}: not UTF-8 (byte {error.start + 1} of the line)",
            "convert it, for instance: iconv -f latin1 -t utf-8",
        )
        return None


def refuse_foreign(name: str, head: bytes) -> None:
    """Raise InputError if the first bytes of what should be text are those of some other format."""
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            hint = "name it .parquet" if magic == b"PAR1" else "give text, csv, tsv, jsonl or parquet, in UTF-8"
            raise InputError(f"{name} is {what}, not UTF-8 text", hint)
    if b"\0" in head:
        raise InputError(f"{name} is a binary file, not text", "give text, csv, tsv, jsonl or parquet")


def _check_suffix(name: str, head: bytes) -> None:
    found = {".gz": ("gzip", head.startswith(GZIP_MAGIC)), ".zst": ("zstd", is_zstd(head))}
    what, is_so = found.get(Path(name).suffix.lower(), ("", True))
    if not is_so:
        raise InputError(f"{name} is not {what} data", "its name says so; rename it if it is not compressed")


def _open_file(path: Path) -> BinaryIO:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder", "give a file")
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"no such file: {path}", "check the path") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check its permissions") from None
