"""Question pairs in the shapes in which they circulate."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard

from sentcompress.corpora.pairs import Pair, read_pairs
from sentcompress.errors import InputError

HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_official_quoting_with_line_ends_inside(tmp_path: Path) -> None:
    content = HEADER + '0\t1\t2\t"When do I use ""&""?"\tWhat is it?\t1\n'
    content += '1\t3\t4\t"Two\nlines and a\ttab"\tOne line\t0\n2\t5\t6\t"""Quoted"" first"\tlast\t1\n'
    assert read_pairs(write(tmp_path / "q.tsv", content)).rows == (
        Pair('When do I use "&"?', "What is it?", True),
        Pair("Two\nlines and a\ttab", "One line", False),
        Pair('"Quoted" first', "last", True),
    )


def test_plain_quotes_are_characters(tmp_path: Path) -> None:
    content = HEADER + '0\t1\t2\t"A" or "B"?\t"C\t1\n1\t\t\tuse "&" instead\t"all"\t0\n'
    assert read_pairs(write(tmp_path / "q.tsv", content)).rows == (
        Pair('"A" or "B"?', '"C', True),
        Pair('use "&" instead', '"all"', False),
    )


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_compressed_csv_without_ids(tmp_path: Path, compress) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / f"q.csv.{'gz' if compress is gzip.compress else 'zst'}"
    path.write_bytes(compress(b'question1,question2,is_duplicate\n"a, b",c,1\n ,d,0\ne,f,False\n'))
    pairs = read_pairs(path)
    assert pairs.rows == (Pair("a, b", "c", True), Pair("e", "f", False))
    assert pairs.empty == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.tsv", "question1\tquestion2\nx\ty\n", "no column 'is_duplicate'"),
        ("q.tsv", HEADER + "0\t1\t2\ta\tb\tmaybe\n", "line 2: is_duplicate is 'maybe'"),
        ("q.tsv", HEADER + "0\t1\t2\ta\tb\t1\n0\t1\t2\ta\n", "line 3: 4 fields, the header has 6"),
        ("q.csv", 'question1,question2,is_duplicate\n"a,b,1\n', "broken quoting"),
        ("q.tsv", HEADER, "holds no pairs"),
        ("q.tsv", "", "is empty"),
        ("q.json", "{}", "cannot tell how its columns are separated"),
    ],
)
def test_broken_files_say_where(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pairs(write(tmp_path / name, content))


def test_real_pairs_have_the_documented_counts(shared_data: Path) -> None:
    pairs = read_pairs(shared_data / "quora" / "quora.tsv.gz")
    assert len(pairs.rows) == 29_359
    assert sum(pair.duplicate for pair in pairs.rows) == 13_425
