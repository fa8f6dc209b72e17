"""Pairs of a query and a text that answers it, from files with columns of any of the usual names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from sentcompress.corpora.columns import listed
from sentcompress.corpora.formats import find_format
from sentcompress.corpora.pairs import ENTITY_COLUMNS, MARKS, PAIR_COLUMNS, Pair, read_pairs
from sentcompress.corpora.readers import read_table
from sentcompress.corpora.records import BadRecordError, plain_text
from sentcompress.corpora.text_files import BadRecords, as_source
from sentcompress.errors import InputError

# The first of these that a file has are taken.
KNOWN_COLUMNS = (
    ("query", "positive"),
    ("anchor", "positive"),
    ("question", "answer"),
    ("query", "document"),
    ("query", "passage"),
    ("sent0", "sent1"),
)
# With a third column that says whether the second text answers the first.
MARKED_COLUMNS = (PAIR_COLUMNS, ENTITY_COLUMNS)
Row = tuple[int, Mapping[str, object]]


def read_positives(path: Path, columns: Sequence[str], bad: BadRecords) -> Iterator[Pair]:
    """The pairs of a csv, tsv, jsonl or parquet file, in its order; an empty side is an empty text.

    Args:
        columns: those of the query and of the positive; none for the known ones. Question pairs and entity pairs
            carry a mark, and those marked 0 come as pairs that do not belong together.
        bad: what to do with rows that cannot be read.

    Raises:
        InputError: whatever is wrong with the file; unknown columns, with those that are there.
    """
    rows = iter(read_table(path, bad=bad))
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path} has no rows", "give a file of queries and positives")
    there = list(first[1])
    marked = next((known for known in MARKED_COLUMNS if not columns and set(known) <= set(there)), None)
    if marked and find_format(as_source(path), None) in ("csv", "tsv"):
        return _marked_file(path, marked)
    names = marked or _find_columns(path, columns, there)
    return _pairs(path, chain([first], rows), names, bad)


def _marked_file(path: Path, columns: tuple[str, str, str]) -> Iterator[Pair]:
    """As evaluations read it: Quora's release has line ends within quoted questions."""
    pairs = read_pairs(path, columns)
    yield from (Pair("", "", True) for _ in range(pairs.empty))
    yield from pairs.rows


def _pairs(path: Path, rows: Iterator[Row], names: tuple[str, ...], bad: BadRecords) -> Iterator[Pair]:
    for number, row in rows:
        query, positive, *mark = [row.get(name) for name in names]
        if not isinstance(query, str) or not isinstance(positive, str):
            bad.add(f"{path}, line {number}: {names[0]} and {names[1]} are not both texts")
            continue
        try:
            word = plain_text(mark[0], names[2]) if mark else "1"
        except BadRecordError as error:
            bad.add(f"{path}, line {number}: {error}")
            continue
        belong = MARKS.get(word.lower())
        if belong is None:
            bad.add(f"{path}, line {number}: {names[2]} is {word[:40]!r}, not 0 or 1")
            continue
        yield Pair(query, positive, belong)


def _find_columns(path: Path, columns: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    columns_there = f"columns there: {listed(there)}"
    missing = [column for column in columns if column not in there]
    if missing:
        raise InputError(f"{path} has no column {', '.join(map(repr, missing))}", columns_there)
    found = tuple(columns) or next((known for known in KNOWN_COLUMNS if set(known) <= set(there)), ())
    if not found:
        raise InputError(
            f"{path}: cannot tell which columns hold queries and positives",
            f"{columns_there}; name them: --column QUERY --column POSITIVE",
        )
    return found
