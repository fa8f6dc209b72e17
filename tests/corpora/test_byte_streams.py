from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from bounded import cost_of_reading

from sentcompress.corpora import byte_streams
from sentcompress.corpora.text_files import open_lines
from sentcompress.errors import InputError

ZSTD = b"\x28\xb5\x2f\xfd"
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstandard.compress}


def frame(blocks: bytes, *, window: int = 17) -> bytes:
    """A zstd frame of some blocks that needs a window of 2^window bytes."""
    return ZSTD + bytes([0, (window - 10) << 3]) + blocks + last_block(b"")


def repeated(byte: bytes, count: int) -> bytes:
    """A block of one byte, repeated: four bytes for as many as 128 KiB."""
    return (1 << 1 | count << 3).to_bytes(3, "little") + byte


def last_block(content: bytes) -> bytes:
    return (1 | len(content) << 3).to_bytes(3, "little") + content


def test_a_zstd_bomb_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zst"
    path.write_bytes(frame(repeated(b"a", 2**17) * 50_000))
    cost = cost_of_reading(path, "lines")
    assert path.stat().st_size < 250_000
    assert "longer than" in cost.message
    assert cost.memory < 100  # measured: 50


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_file_cannot_unpack_to_hundreds_of_times_its_size(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bomb.txt.{suffix}"
    line = b"x" * 99 + b"\n"
    path.write_bytes(PACKERS[suffix](line * 2_000_000))
    cost = cost_of_reading(path, "lines")
    assert cost.message == f"{path} decompresses to more than 64 MiB and 200 times its size"
    assert cost.texts * len(line) <= byte_streams.UNPACKED_ALWAYS + 2**21
    assert cost.memory < 80  # measured: 36
    assert cost.seconds < 5


@pytest.mark.parametrize("suffix", PACKERS)
def test_millions_of_empty_lines_end_in_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"bomb.txt.{suffix}"
    path.write_bytes(PACKERS[suffix](b"\n" * 16_000_000))
    cost = cost_of_reading(path)
    assert cost.message == f"{path} decompresses to more than 1000000 lines, and more lines than it has bytes"
    assert cost.seconds < 5


def test_repetitive_text_below_the_limits_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.zst"
    path.write_bytes(zstandard.compress(b"the same sentence\n" * 900_000))
    assert sum(1 for _ in open_lines(path)) == 900_000


def test_a_window_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(frame(last_block(b"text\n"), window=31))
    with pytest.raises(InputError, match="window above 128 MiB") as caught:
        list(open_lines(path))
    assert caught.value.hint == "compress it again without --long or --ultra"


def test_skippable_frames_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    skipped = b"\x53\x2a\x4d\x18" + struct.pack("<I", 4) + b"size"
    path.write_bytes(skipped + zstandard.compress(b"one\n") + skipped + zstandard.compress(b"two"))
    assert list(open_lines(path)) == [(1, "one"), (2, "two")]


def test_many_empty_frames_are_quick(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(zstandard.compress(b"") * 100_000)
    cost = cost_of_reading(path, "lines")
    assert cost.message == f"{path} is empty"
    assert cost.seconds < 5


@pytest.mark.parametrize("cut", [1, 3, 20])
def test_a_truncated_frame_is_detected(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(zstandard.compress(b"one\n") + zstandard.compress(b"some more text\n" * 1000)[:-cut])
    with pytest.raises(InputError, match="broken compressed data"):
        list(open_lines(path))
