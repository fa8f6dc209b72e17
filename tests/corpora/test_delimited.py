from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.corpora import delimited
from sentcompress.corpora.delimited import plain_rows, quoted_rows
from sentcompress.corpora.text_files import BadRecords
from sentcompress.errors import InputError


def test_csv_is_quoted_and_tsv_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n"x, ""y""\nz",2\n\n3,4\n')
    assert list(quoted_rows(tmp_path / "a.csv")) == [(1, ["a", "b"]), (3, ['x, "y"\nz', "2"]), (5, ["3", "4"])]
    (tmp_path / "a.tsv").write_text('a\tb\n"x\ty"\n')
    assert list(plain_rows(tmp_path / "a.tsv")) == [(1, ["a", "b"]), (2, ['"x', 'y"'])]


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


def test_rows_of_short_lines_are_not_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LONGEST_LINE", 100)
    (tmp_path / "a.csv").write_text("a,b\n" + "1,2\n" * 100)
    assert len(list(quoted_rows(tmp_path / "a.csv"))) == 101
