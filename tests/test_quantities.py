"""Sizes and times as people write them."""

from __future__ import annotations

import pytest

from sentcompress.quantities import counted, read_bytes, read_seconds, told_bytes, told_time


def test_one_thing_is_singular() -> None:
    assert [counted(count, "query", "queries") for count in (0, 1, 2345)] == ["0 queries", "1 query", "2,345 queries"]
    assert told_bytes(1) == "1 byte"


@pytest.mark.parametrize(
    ("text", "count"),
    [("10MB", 10_000_000), ("10 mb", 10_000_000), ("1.5MiB", 1_572_864), ("128", 128), ("2k", 2000), ("1GB", 10**9)],
)
def test_sizes(text: str, count: int) -> None:
    assert read_bytes(text) == count


@pytest.mark.parametrize(("text", "seconds"), [("30m", 1800), ("2h", 7200), ("90s", 90), ("5", 300), ("0.5 min", 30)])
def test_times(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "MB", "10XB", "-3MB", "0", "1e6", "ten", 400 * "9"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_bytes(text)


@pytest.mark.parametrize("text", ["", "soon", "0m", "30d", "-5m", 400 * "9"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_seconds(text)


def test_in_words() -> None:
    assert [told_bytes(count) for count in (128, 9_489_094, 22_829_488, 1500, 999_900)] == [
        "128 bytes",
        "9.49 MB",
        "22.8 MB",
        "1.5 kB",
        "1,000 kB",
    ]
    assert [told_time(seconds) for seconds in (20, 100, 3700, 7300)] == ["20 s", "2 min", "62 min", "2 h 2 min"]
