"""Text line by line, and limits on the text held in memory.

Every fault becomes an `InputError` that names the file and the line.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import AnyStr, BinaryIO, TypeVar, cast

from sentcompress.corpora.byte_streams import Readable, as_source, open_bytes
from sentcompress.errors import InputError
from sentcompress.progress import Reporter
from sentcompress.quantities import counted

# Bytes. A longer line or value means that the file has another format; reading on would only fill the memory.
LONGEST_LINE = 16 * 2**20
# Characters per batch; only reached if lines are megabytes long.
BATCH_CHARACTERS = 2**25
# Approximate bytes of a data set: its characters, plus the overhead of each Python string.
LARGEST_SET = 2**30
_PER_TEXT = 100
# What to do with a line that cannot be read.
FIX_LINE = "fix the line"
# What is wrong with a text that is not `is_encodable`.
LONE_SURROGATE = "contains a lone surrogate (half of a UTF-16 pair)"
_BLOCK = 2**18
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FOREIGN = (
    (b"PAR1", "a Parquet file"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive, as Word documents are"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"ARROW1", "an Arrow file"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
)
# Hints for some of these formats.
_HINTS = {
    b"PAR1": "name it .parquet",
    b"%PDF": "convert it to text first, for example with pdftotext",
    b"PK\x03\x04": "convert a document to text first, for example with pandoc; unpack an archive",
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "convert it: iconv -f utf-16 -t utf-8 OLD > NEW"),
}
Item = TypeVar("Item")


class NotSkippedError(InputError):
    """A line or a file cannot be read, and unreadable ones are not skipped."""


@dataclass
class BadRecords:
    """What to do with a line that cannot be read: stop there, or skip and count it.

    Attributes:
        skip: whether such lines are skipped; None if the command has no such option.
        count: how many were.
        first: the message for the first of them.
        other_splits: rows that were left out because their column `split` names another one.
        empty: documents that were left out because they have no text.
        unasked: table -> its text columns, if they were chosen by their names and each is read as a document.
        unread: table -> its columns that hold text and are not read, if those that are read were chosen by their names.
    """

    skip: bool | None = None
    count: int = 0
    first: str | None = field(default=None)
    other_splits: int = 0
    empty: int = 0
    unasked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unread: dict[str, list[str]] = field(default_factory=dict)

    def add(self, message: str, hint: str = FIX_LINE, what: str = "lines") -> None:
        """Count a bad line, or another unit, such as a file.

        Raises:
            NotSkippedError: with `message`, if they are not skipped.
        """
        if not self.skip:
            raise NotSkippedError(
                message, hint if self.skip is None else f"{hint}; or skip such {what} with `skip_bad`"
            )
        self.count += 1
        self.first = self.first or message

    def warn(self, reporter: Reporter) -> None:
        """Warn of what was skipped, if anything was."""
        if self.count:
            reporter.warn(f"{told_skipped(self.count)}; the first: {self.first}")


def told_skipped(count: int) -> str:
    """The number of lines and files that were skipped because they cannot be read, in words."""
    return f"skipped {counted(count, 'unreadable line or file', 'unreadable lines or files')}"


def told_other_splits(count: int, split: str) -> str:
    """The number of rows that were left out because they are of other splits than `split`, in words."""
    return f"left out {counted(count, 'row')} whose column split is not {split}"


class HeldText:
    """Counts the text of a data set that is held in memory.

    Args:
        name: the file name used in errors.
    """

    def __init__(self, name: object) -> None:
        self._name = name
        self._size = 0

    def add(self, *texts: str) -> None:
        """Add texts to the count.

        Raises:
            InputError: if the data set exceeds LARGEST_SET.
        """
        self._size += sum(map(len, texts)) + _PER_TEXT * len(texts)
        if self._size > LARGEST_SET:
            raise InputError(
                f"{self._name} holds more than {LARGEST_SET // 2**20} MiB of text, too much to keep in memory",
                "use a smaller data set",
            )


def batches(
    items: Iterable[Item], count: int, size: Callable[[Item], int], most: int | None = None
) -> Iterator[list[Item]]:
    """The items in lists of `count`, or fewer if they are large.

    Args:
        items: consumed one batch at a time.
        count: the maximum number of items in a batch.
        size: returns the characters of an item.
        most: a batch ends when it reaches this many characters; by default BATCH_CHARACTERS.
    """
    most = most or BATCH_CHARACTERS
    batch: list[Item] = []
    characters = 0
    for item in items:
        batch.append(item)
        characters += size(item)
        if len(batch) == count or characters >= most:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def is_encodable(text: str) -> bool:
    """Whether the text can be written as UTF-8. JSON can express half a surrogate pair, which no encoding has."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def open_lines(
    readable: Readable, *, bad: BadRecords | None = None, encoding: str = "utf-8"
) -> Iterator[tuple[int, str]]:
    """Lines with their numbers (from 1), without line ends. A byte order mark is dropped.

    A line ends with LF, CR LF or CR, as with Python's universal newlines.

    Args:
        readable: a path, "-" for standard input, or a `ByteSource`.
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
            raise InputError(message, "name a file of text, with shorter lines") from None
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
            "convert it, for example: iconv -f windows-1252 -t utf-8 OLD > NEW",
        )
        return None


def refuse_foreign(name: str, head: bytes) -> None:
    """Raise InputError if the first bytes of what should be text are those of some other format."""
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise InputError(
                f"{name} is {what}, not UTF-8 text",
                _HINTS.get(magic, "give text, csv, tsv, jsonl or parquet, in UTF-8"),
            )
    if b"\0" in head:
        raise InputError(
            f"{name} is a binary file, not text: it has NUL bytes",
            "give text, csv, tsv, jsonl or parquet; from a file that is text, remove them: tr -d '\\000' < OLD > NEW",
        )
