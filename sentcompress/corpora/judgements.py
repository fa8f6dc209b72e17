"""Relevance judgements: which document answers which query, and how well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.numbers import parse_number
from sentcompress.corpora.text_files import open_lines
from sentcompress.errors import InputError

QUERY = ("query-id", "query_id", "queryid", "qid", "query")
DOCUMENT = ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "document_id", "pid", "corpus")
SCORE = ("score", "relevance", "rel", "label", "grade")
SPLIT = ("split",)


@dataclass(frozen=True)
class Judgement:
    """One line: grades above zero are relevant; `split` is None in files without such a column."""

    query: str
    document: str
    grade: int
    split: str | None


@dataclass(frozen=True)
class _Columns:
    query: int
    document: int
    grade: int
    split: int | None
    width: int


def read_judgements(path: Path) -> Iterator[Judgement]:
    """The lines of a qrels file, with or without a header; tabs or blanks between the fields.

    With a header: `query-id`, `corpus-id`, `score` and perhaps `split`, in any order. Without: query, document and
    grade, a split after them if the fourth is no number; or trec_eval's query, iteration, document and grade.

    Raises:
        InputError: a line with too few fields, or a grade that is no whole number (file and line).
    """
    columns: _Columns | None = None
    for number, line in open_lines(path):
        fields = line.split("\t") if "\t" in line else line.split()
        if not fields or not line.strip():
            continue
        if columns is None:
            columns = _of_header(fields)
            if columns is not None:
                continue
            columns = _without_header(fields)
        if len(fields) < columns.width:
            raise InputError(
                f"{path}, line {number}: {len(fields)} fields, not {columns.width}",
                "a line of judgements is: query, document, grade; or trec_eval's query, 0, document, grade",
            )
        split = None if columns.split is None else fields[columns.split].strip()
        grade = _grade(fields[columns.grade], path, number)
        yield Judgement(fields[columns.query].strip(), fields[columns.document].strip(), grade, split)


def splits_of(path: Path) -> list[str]:
    """The splits that a file names, in the order of their first lines; empty without such a column."""
    found: dict[str, None] = {}
    for judgement in read_judgements(path):
        if judgement.split is None:
            return []
        found.setdefault(judgement.split)
    return list(found)


def _of_header(fields: Sequence[str]) -> _Columns | None:
    names = [field.strip().lower() for field in fields]

    def place(known: Sequence[str]) -> int | None:
        return next((names.index(name) for name in known if name in names), None)

    query, document, grade = place(QUERY), place(DOCUMENT), place(SCORE)
    if query is None or document is None or grade is None:
        return None
    return _Columns(query, document, grade, place(SPLIT), len(fields))


def _without_header(fields: Sequence[str]) -> _Columns:
    if len(fields) >= 4 and _is_whole(fields[3]):
        return _Columns(0, 2, 3, None, 4)
    return _Columns(0, 1, 2, 3 if len(fields) >= 4 else None, min(max(len(fields), 3), 4))


def _is_whole(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


def _grade(text: str, path: Path, number: int) -> int:
    value = parse_number(text)
    if value is None or not value.is_integer():
        raise InputError(
            f"{path}, line {number}: the grade is {text[:40]!r}, which is not a whole number or is too large",
            "a line of judgements is: query, document, grade; or trec_eval's query, 0, document, grade",
        )
    return int(value)
