"""Rows and numbers of comma- and tab-separated files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora import delimited
from sentcompress.corpora.delimited import parse_number, quoted_rows, tabbed_rows
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError


def test_csv_is_quoted_and_tsv_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n"x, ""y""\nz",2\n\n3,4\n')
    assert list(quoted_rows(tmp_path / "a.csv")) == [(1, ["a", "b"]), (3, ['x, "y"\nz', "2"]), (5, ["3", "4"])]
    (tmp_path / "a.tsv").write_text('a\tb\n"x\ty"\n')
    assert list(tabbed_rows(tmp_path / "a.tsv")) == [(1, ["a", "b"]), (2, ['"x', 'y"'])]


def test_broken_quoting_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n1,2\n"x"y,3\n4,5\n')
    with pytest.raises(InputError, match="line 3: broken quoting"):
        list(quoted_rows(tmp_path / "a.csv"))
    bad = BadRecords(skip=True)
    assert [row for _, row in quoted_rows(tmp_path / "a.csv", bad=bad)] == [["a", "b"], ["1", "2"], ["4", "5"]]


def test_a_row_of_many_quoted_lines_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LONGEST_LINE", 100)
    fields = ",".join(['"some\ntext"'] * 20)
    (tmp_path / "a.csv").write_text(f"a,b\n1,2\n{fields}\n")
    with pytest.raises(InputError, match="a row longer than 100 characters"):
        list(quoted_rows(tmp_path / "a.csv"))


def test_the_limit_is_per_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LONGEST_LINE", 100)
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 100)
    assert len(list(quoted_rows(tmp_path / "a.csv"))) == 101


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
def test_only_numbers_within_the_limits_are_parsed(text: str, value: float | None) -> None:
    assert parse_number(text) == value
