"""Lines of text files, and limits on text in memory."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from sentcompress.corpora import text_files
from sentcompress.corpora.byte_streams import format_extension
from sentcompress.corpora.pairs import read_pairs
from sentcompress.corpora.sts import read_sts_file
from sentcompress.corpora.text_files import BadRecords, HeldText, batches, open_lines
from sentcompress.corpora.transfer import read_transfer
from sentcompress.errors import InputError

TEXT = "\ufefffirst\r\nsecond h\u00e9\n\nlast"
LINES = [(1, "first"), (2, "second h\u00e9"), (3, ""), (4, "last")]
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("suffix", PACKERS)
def test_lines_are_numbered_and_clean(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT.encode()))
    assert list(open_lines(path)) == LINES


def test_compression_is_seen_without_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert list(open_lines(path)) == LINES


def test_zstd_of_several_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.zst"
    path.write_bytes(zstandard.compress(b"one\n" * 50_000) + zstandard.compress(b"two"))
    lines = list(open_lines(path))
    assert len(lines) == 50_001
    assert lines[-1] == (50_001, "two")


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_truncated_compressed_data_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    whole = PACKERS[suffix](os.urandom(50_000).hex().encode() + b"\n")
    path.write_bytes(whole[:-500])
    with pytest.raises(InputError, match="broken compressed data"):
        list(open_lines(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"fine\n\xff\xfe\n", "line 2: not UTF-8"),
        (b"\x89PNG\r\n\x1a\n rest", "a PNG image"),
        (b"PAR1 rest", "a Parquet file"),
        ("text".encode("utf-16"), "UTF-16"),
        (b"some\0thing", "binary file, not text: it has NUL bytes"),
    ],
)
def test_content_that_is_not_text_is_a_clear_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(open_lines(path))


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_the_error_for_utf_16_has_the_command_that_converts_it(tmp_path: Path, mark: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(mark + "text".encode("utf-16-le"))
    with pytest.raises(InputError) as caught:
        list(open_lines(tmp_path / "a.csv"))
    assert caught.value.hint == "convert it: iconv -f utf-16 -t utf-8 OLD > NEW"


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(open_lines(tmp_path / "nothing"))
    with pytest.raises(InputError, match="is a folder"):
        list(open_lines(tmp_path))
    (tmp_path / "a.gz").write_text("plain")
    with pytest.raises(InputError, match="not gzip data"):
        list(open_lines(tmp_path / "a.gz"))


def test_bad_lines_can_be_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n\xff\ntwo\n")
    bad = BadRecords(skip=True)
    assert list(open_lines(path, bad=bad)) == [(1, "one"), (3, "two")]
    assert bad.count == 1
    assert "line 2" in str(bad.first)


def test_an_endless_line_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentcompress.corpora.text_files.LONGEST_LINE", 100)
    path = tmp_path / "a.txt"
    path.write_text("short\n" + "x" * 1000)
    with pytest.raises(InputError, match="line 2: longer than 100"):
        list(open_lines(path))


def test_the_extension_looks_through_compression() -> None:
    assert format_extension("pairs.CSV.gz") == "csv"
    assert format_extension("pairs.gz") == ""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("longest", [16 * 2**20, 20, 7])
def test_every_line_end_gives_the_same_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, mark: str, last: bool, longest: int
) -> None:
    monkeypatch.setattr("sentcompress.corpora.text_files.LONGEST_LINE", longest)
    lines = ["one", "", "tw\u00f6", "three", "four"]
    path = tmp_path / "a.txt"
    path.write_bytes((mark + end.join(lines) + (end if last else "")).encode())
    assert [line for _, line in open_lines(path)] == lines
    assert [number for number, _ in open_lines(path)] == [1, 2, 3, 4, 5]


def test_line_ends_are_those_of_python(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    content = "one\rtwo\r\nthree\n\rfour\u0085five\u2028six\x0bseven\r\r\neight\r"
    path.write_bytes(content.encode())
    with path.open(encoding="utf-8") as file:
        expected = [line.rstrip("\n") for line in file]
    assert [line for _, line in open_lines(path)] == expected


def test_lines_longer_than_a_block_are_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sentcompress.corpora.text_files._BLOCK", 8)
    path = tmp_path / "a.txt"
    lines = ["x" * 30, "y", "\u00e9" * 20, "", "z" * 8, "last"]
    for end in ("\n", "\r\n"):
        path.write_bytes(end.join(lines).encode())
        assert [line for _, line in open_lines(path)] == lines


def test_batches_end_by_number_or_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "BATCH_CHARACTERS", 10)
    assert list(batches(["a", "b", "c", "x" * 20, "y" * 9, "zz", "d"], 3, len)) == [
        ["a", "b", "c"],
        ["x" * 20],
        ["y" * 9, "zz"],
        ["d"],
    ]
    assert list(batches([], 3, len)) == []


def test_text_in_memory_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LARGEST_SET", 1000)
    held = HeldText("a.tsv")
    held.add("x" * 500, "y")
    with pytest.raises(InputError, match=r"a\.tsv holds more than"):
        held.add("z" * 300)


def test_data_sets_in_memory_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LARGEST_SET", 2000)
    (tmp_path / "a.tsv").write_text("".join(f"{number}\tone text\tanother\n" for number in range(20)))
    with pytest.raises(InputError, match=r"a\.tsv holds more than"):
        read_sts_file(tmp_path / "a.tsv")
    (tmp_path / "q.csv").write_text("question1,question2,is_duplicate\n" + "one text,another,1\n" * 20)
    with pytest.raises(InputError, match=r"q\.csv holds more than"):
        read_pairs(tmp_path / "q.csv")
    (tmp_path / "MR").mkdir()
    (tmp_path / "MR" / "all.tsv").write_text("".join(f"{number % 2}\tone text\n" for number in range(20)))
    with pytest.raises(InputError, match=r"all\.tsv holds more than"):
        read_transfer(tmp_path / "MR")
