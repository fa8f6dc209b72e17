"""The user's own queries: read from files, the distinct ones split into training and held-out queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.delimited import listed
from sentcompress.corpora.documents_artifact import DEV, TEST
from sentcompress.corpora.readers import find_format, rows_of
from sentcompress.corpora.records import BadRecordError, text_of
from sentcompress.corpora.text_files import LONE_SURROGATE, BadRecords, is_encodable, open_lines
from sentcompress.errors import InputError
from sentcompress.passages.holdout import Drawing

COLUMNS = ("query", "text", "question", "search", "q")
# Held out of a log: SHARE of the queries, but from FEWEST to MOST, and never more than half of the log.
SHARE = 0.1
FEWEST, MOST = 50, 500


@dataclass(frozen=True)
class SplitLog:
    """The distinct queries of a log, in order; `queries` reads them again.

    Each is given with its part, dev or test, if it is held out; the part of the others is empty.
    """

    count: int
    held: int
    queries: Callable[[], Iterator[tuple[str, str]]]


def read_log(paths: Sequence[Path], bad: BadRecords) -> Iterator[str]:
    """The queries of files: lines of text, or a column of a table, the first of COLUMNS that is in its first row.

    Raises:
        InputError: if a file cannot be read or has none of these columns; faults of single lines go through `bad`.
    """
    for path in paths:
        source = as_source(path)
        format_name = find_format(source, None)
        if format_name == "text":
            found = open_lines(source, bad=bad)
        else:
            found = _of_rows(path, rows_of(format_name, source, bad, COLUMNS), bad)
        for number, query in found:
            if text := " ".join(query.split()):
                if is_encodable(text):
                    yield text
                else:
                    bad.add(f"{path}, line {number}: the query {LONE_SURROGATE}")


def _of_rows(
    path: Path, rows: Iterable[tuple[int, Mapping[str, object]]], bad: BadRecords
) -> Iterator[tuple[int, str]]:
    """The queries of the rows of a table, with their line numbers."""
    column = ""
    for number, row in rows:
        column = column or _column(str(path), list(row))
        try:
            query = text_of(row, column)
        except BadRecordError as error:
            bad.add(f"{path}, line {number}: {error}")
        else:
            yield number, query


def split_log(read: Callable[[], Iterator[str]], seed: int) -> SplitLog:
    """Hold out some of the distinct queries; those that are alike (`words.likeness`) are one.

    Raises:
        InputError: if there is no query.
    """
    drawing = Drawing()
    for query in read():
        drawing.add(query, seed)
    alike, first, distinct = drawing.likenesses, drawing.first(), drawing.drawn()
    if not len(distinct):
        raise InputError("`queries` holds no queries", "give a file with one query per line")
    held = min(MOST, max(FEWEST, round(SHARE * len(distinct))), len(distinct) // 2)
    of_test, of_dev = (np.isin(alike, distinct[start:held:2]) for start in (0, 1))

    def queries() -> Iterator[tuple[str, str]]:
        for number, query in enumerate(read()):
            if first[number]:
                yield query, TEST if of_test[number] else DEV if of_dev[number] else ""

    return SplitLog(len(distinct), held, queries)


def _column(name: str, there: Sequence[str]) -> str:
    column = next((known for known in COLUMNS if known in there), None)
    if column is None:
        raise InputError(
            f"{name} has no column of queries ({listed(COLUMNS)})",
            f"its columns: {listed(there)}; rename one, or give a text file with one query per line",
        )
    return column
