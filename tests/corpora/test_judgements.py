"""Judgements in every shape in which they circulate."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sentcompress.corpora.judgements import Judgement, read_judgements, splits_of
from sentcompress.errors import InputError


def read(path: Path, content: str) -> list[Judgement]:
    path.write_text(content, encoding="utf-8")
    return list(read_judgements(path))


ONE, TWO = Judgement("q1", "d1", 2, None), Judgement("q2", "d 2", 0, None)


@pytest.mark.parametrize(
    "content",
    [
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td 2\t0\n",
        "score\tcorpus-id\tquery-id\textra\n2\td1\tq1\tx\n0\td 2\tq2\tx\n",
        "q1\td1\t2\n\nq2\td 2\t0\n",
        "q1\t0\td1\t2\nq2\t0\td 2\t0\n",
        "q1\t0\td1\t2.0\nq2\tQ0\td 2\t0\n".replace("2.0", "2"),
    ],
    ids=["header", "header in another order", "three columns", "trec", "trec with Q0"],
)
def test_layouts(tmp_path: Path, content: str) -> None:
    assert read(tmp_path / "qrels.tsv", content) == [ONE, TWO]


def test_blanks_between_fields_and_compression(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt.gz"
    path.write_bytes(gzip.compress(b"q1 0  d1 2\nq3 0 d3 -1\n"))
    assert list(read_judgements(path)) == [ONE, Judgement("q3", "d3", -1, None)]


def test_a_split_column_with_and_without_a_header(tmp_path: Path) -> None:
    rows = "q1\td1\t1\ttrain\nq2\td2\t1\tdev\nq3\td3\t1\ttrain\n"
    for header in ("query-id\tcorpus-id\tscore\tsplit\n", ""):
        found = read(tmp_path / "qrels.tsv", header + rows)
        assert [one.split for one in found] == ["train", "dev", "train"]
        assert splits_of(tmp_path / "qrels.tsv") == ["train", "dev"]
    read(tmp_path / "plain.tsv", "q1\td1\t1\n")
    assert splits_of(tmp_path / "plain.tsv") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("q1\td1\t1\nq2\td2\n", "line 2: 2 fields, not 3"),
        ("q1\td1\tgood\n", "line 1: the grade is 'good'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t0.5\n", "line 2: the grade is '0.5'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\tnan\n", "line 2: the grade is 'nan'"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path / "qrels.tsv", content)
