"""Files, pipes and standard input as streams of bytes.

gzip and zstd data are decompressed in bounded memory, with limits against decompression bombs. A stream that can be
read only once, or has to be read from its end, is copied to a temporary file.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import zstandard

from sentcompress.commands.shared import STDIN
from sentcompress.errors import InputError, path_hint

COMPRESSED = (".gz", ".zst")
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A skippable frame, as pzstd writes before each of its frames: a byte from 50 to 5f, then these.
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
_SKIPPABLE_TYPES = tuple(bytes([first]) for first in range(0x50, 0x60))
# Text compresses to a twentieth at best, and to several bytes per line. Every file can decompress to UNPACKED_ALWAYS
# bytes and LINES_ALWAYS lines; a larger one to LARGEST_RATIO bytes and one line per compressed byte.
UNPACKED_ALWAYS = 64 * 2**20
LARGEST_RATIO = 200
LINES_ALWAYS = 1_000_000
# The maximum of the zstd command line without --long.
LARGEST_WINDOW = 2**27
# In zstd, 3 or 4 bytes can decompress to 128 KiB, so this many give some 32 MiB at most.
_PIECE = 1024
_BUFFER = 2**20
# Share of the space that is free at the start; the rest is left to other processes.
SHARE_OF_FREE_SPACE = 0.9


@dataclass(frozen=True)
class ByteSource:
    """Something that can be read from its beginning, any number of times; errors call it `name`."""

    name: str
    open: Callable[[], BinaryIO]

    @property
    def extension(self) -> str:
        """See `format_extension`; empty for standard input."""
        return format_extension(self.name)


Readable = str | Path | ByteSource


def format_extension(name: str | Path) -> str:
    """The lower-case extension without the dot, looking through `.gz` and `.zst`.

    >>> format_extension("pairs.CSV.gz")
    'csv'
    """
    return without_compression(Path(name)).suffix.lower().removeprefix(".")


def without_compression(path: Path) -> Path:
    """The path without `.gz` or `.zst`."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def as_source(readable: Readable) -> ByteSource:
    """A path, or "-" for standard input, as a source. Standard input can be read only once."""
    if isinstance(readable, ByteSource):
        return readable
    if str(readable) == STDIN:
        # A copy of the descriptor, so that closing this stream leaves the process its standard input.
        return ByteSource("standard input", lambda: os.fdopen(os.dup(sys.stdin.fileno()), "rb"))
    path = Path(readable)
    return ByteSource(str(path), lambda: _open_file(path))


@contextmanager
def open_bytes(readable: Readable) -> Iterator[BinaryIO]:
    """The content as bytes, decompressed if its first bytes are those of gzip or zstd.

    Raises:
        InputError: no such file, a folder, no permission, an empty file, broken compressed data, or a limit of
            `unpacked`.
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


@contextmanager
def spooled(stream: BinaryIO, name: str, folder: Path | None = None) -> Iterator[BinaryIO]:
    """An unnamed temporary file with the content of a stream, positioned at its beginning.

    Args:
        stream: read to its end.
        name: its name in errors.
        folder: where the file is created; by default the folder for temporary files.

    Raises:
        InputError: if the content takes more than SHARE_OF_FREE_SPACE of the free space there.
    """
    place = folder or Path(tempfile.gettempdir())
    room = int(shutil.disk_usage(place).free * SHARE_OF_FREE_SPACE)
    with tempfile.TemporaryFile(dir=place) as file:
        size = 0
        while block := stream.read(_BUFFER):
            size += len(block)
            if size > room:
                free = f"{room // 2**20} MiB, {SHARE_OF_FREE_SPACE:.0%} of the free space"
                raise InputError(
                    f"{name} does not fit into {place} ({free})",
                    "free some space there (for temporary files, TMPDIR names another disk)",
                )
            file.write(block)
        file.flush()
        file.seek(0)
        yield file


@contextmanager
def spooled_source(stream: BinaryIO, name: str, folder: Path | None = None) -> Iterator[ByteSource]:
    """Like `spooled`, but as a source, which can be read several times, one after the other."""
    with spooled(stream, name, folder) as file:

        def reopen() -> BinaryIO:
            file.seek(0)
            return os.fdopen(os.dup(file.fileno()), "rb")

        yield ByteSource(name, reopen)


@contextmanager
def unpacked(raw: io.BufferedReader, name: str) -> Iterator[BinaryIO]:
    """The content of a stream, decompressed if it starts like gzip or zstd data.

    Args:
        raw: a stream at its beginning.
        name: its name in errors.

    Raises:
        InputError: broken or truncated data; a zstd window above LARGEST_WINDOW; data that decompress to far more
            than text would.
    """
    head = raw.peek(4)[:4]
    try:
        if head.startswith(_GZIP_MAGIC):
            packed = _Packed(raw)
            stream = gzip.GzipFile(fileobj=cast(BinaryIO, packed))
            yield _buffered(_Limited(cast(io.RawIOBase, stream), packed, name))
        elif _is_zstd(head):
            packed = _Packed(raw)
            yield _buffered(_Limited(_ZstdReader(packed), packed, name))
        else:
            yield raw
    except zstandard.ZstdError as error:
        if "too much memory" in str(error):
            message = f"{name} was compressed with a zstd window above {LARGEST_WINDOW // 2**20} MiB"
            raise InputError(message, "compress it again without --long or --ultra") from None
        raise _broken(name, error) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _broken(name, error) from None


def _buffered(stream: io.RawIOBase) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(stream, _BUFFER))


def _broken(name: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0].rstrip(".")
    return InputError(f"{name}: broken compressed data ({reason})", "download or compress the file again")


class _Packed:
    """The compressed stream; counts the bytes read from it."""

    def __init__(self, raw: io.BufferedReader) -> None:
        self._raw = raw
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        found = self._raw.read(size)
        self.count += len(found)
        return found


class _Limited(io.RawIOBase):
    """A decompressed stream that raises InputError if it becomes too large for its compressed size."""

    def __init__(self, stream: io.RawIOBase, packed: _Packed, name: str) -> None:
        self._stream = stream
        self._packed = packed
        self._name = name
        self._bytes = 0
        self._lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        size = self._stream.readinto(target) or 0
        self._bytes += size
        self._lines += bytes(target[:size]).count(b"\n")
        if self._bytes > max(UNPACKED_ALWAYS, LARGEST_RATIO * self._packed.count):
            self._refuse(f"{UNPACKED_ALWAYS // 2**20} MiB and {LARGEST_RATIO} times its size")
        if self._lines > max(LINES_ALWAYS, self._packed.count):
            self._refuse(f"{LINES_ALWAYS} lines, and more lines than it has bytes")
        return size

    def _refuse(self, what: str) -> None:
        raise InputError(f"{self._name} decompresses to more than {what}", "if you trust it, decompress it first")


class _ZstdReader(io.RawIOBase):
    """A zstd stream of one or more frames. Unlike the library's own reader, it notices a truncated file."""

    def __init__(self, packed: _Packed) -> None:
        self._packed = packed
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._inside = False
        self._waiting = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        while not self._ready:
            piece = self._waiting or self._packed.read(_PIECE)
            if not piece:
                if self._inside:
                    raise EOFError("the file ends in the middle of a frame")
                return 0
            self._ready = memoryview(self._frame.decompress(piece))
            self._inside, self._waiting = not self._frame.eof, b""
            if self._frame.eof:
                self._waiting = self._frame.unused_data
                self._frame = self._decompressor.decompressobj()
        size = min(len(target), len(self._ready))
        target[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size


def _is_zstd(head: bytes) -> bool:
    return head.startswith(_ZSTD_MAGIC) or (head[:1] in _SKIPPABLE_TYPES and head[1:4] == _ZSTD_SKIPPABLE)


def _check_suffix(name: str, head: bytes) -> None:
    found = {".gz": ("gzip", head.startswith(_GZIP_MAGIC)), ".zst": ("zstd", _is_zstd(head))}
    what, is_so = found.get(Path(name).suffix.lower(), ("", True))
    if not is_so:
        raise InputError(f"{name} is not {what} data", "rename it if it is not compressed")


def _open_file(path: Path) -> BinaryIO:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder", "give a file")
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"no such file: {path}", path_hint(path)) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check its permissions") from None
