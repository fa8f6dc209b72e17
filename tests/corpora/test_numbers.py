from __future__ import annotations

import pytest

from sentcompress.corpora.numbers import parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4.5", 4.5),
        (" -3 ", -3.0),
        ("1e9", 1e9),
        ("1e-300", 0.0),
        ("\u0663", 3.0),
        *((text, None) for text in ("", "nan", "inf", "-Infinity", "1e999", "1e10", "1_0", "five", "9" * 5000, "0x10")),
    ],
)
def test_only_numbers_of_a_usable_size_count(text: str, value: float | None) -> None:
    assert parse_number(text) == value
