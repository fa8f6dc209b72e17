"""Pairs of texts marked as belonging together or not: Quora's official release, entity pairs, and files like them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.columns import find_columns
from sentcompress.corpora.delimited import quoted_rows
from sentcompress.corpora.holding import Held
from sentcompress.corpora.text_files import format_extension, open_lines
from sentcompress.errors import InputError

PAIR_COLUMNS = ("question1", "question2", "is_duplicate")
ENTITY_COLUMNS = ("query", "entity", "label")
MARKS = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False}
DELIMITERS = {"csv": ",", "tsv": "\t", "tab": "\t", "txt": "\t"}
# In a file with quoting, quotes inside a field are doubled and a quoted field begins and ends at a delimiter.
# An odd run of quotes between two other characters therefore shows that quotes are plain characters here.
PLAIN_QUOTE = re.compile(r'[^\t"](?:"")*"[^\t"]')


@dataclass(frozen=True)
class Pair:
    """Two texts and whether they belong together: questions that are duplicates, a record and its entity."""

    first: str
    second: str
    duplicate: bool


@dataclass(frozen=True)
class Pairs:
    """The pairs of a file, in its order; `empty` pairs had a side without text and were dropped."""

    rows: tuple[Pair, ...]
    empty: int = 0


def read_pairs(path: Path, columns: tuple[str, str, str] = PAIR_COLUMNS) -> Pairs:
    """The pairs of a csv or tsv file whose header names two texts and a mark of 0 or 1.

    Other columns (id, qid1, qid2) may be there or not: a question is known by its text, since parts of the
    data set in circulation have lost their ids. A tab-separated file is read with quoting when its quotes
    follow the rules of csv (Quora's own release does, and has line ends inside questions), else without.

    Args:
        path: the file.
        columns: names of the first text, the second and the mark.

    Raises:
        InputError: a missing column, a mark other than 0 and 1 (with file and line), broken quoting, no pairs, or
            more text than fits in memory.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder", f"give a file of pairs: {', '.join(columns)}")
    rows = _rows(path)
    _, header = next(rows, (0, []))
    places = find_columns(str(path), columns, [name.strip().lower() for name in header])
    pairs: list[Pair] = []
    held, empty = Held(path), 0
    for number, fields in rows:
        if len(fields) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(fields)} fields, the header has {len(header)}",
                "is a quote or a delimiter missing on this line or before it?",
            )
        first, second, mark = (fields[place].strip() for place in places)
        if mark.lower() not in MARKS:
            raise InputError(f"{path}, line {number}: {columns[2]} is {mark[:40]!r}", "it is 0 or 1")
        if first and second:
            held.add(first, second)
            pairs.append(Pair(first, second, MARKS[mark.lower()]))
        else:
            empty += 1
    if not pairs:
        raise InputError(f"{path} holds no pairs", f"a line is {columns[0]}, {columns[1]} and {columns[2]}")
    return Pairs(tuple(pairs), empty)


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line on which each ends; blank lines are passed over."""
    extension = format_extension(path)
    if extension not in DELIMITERS:
        raise InputError(f"{path}: cannot tell how its columns are separated", "name it .csv or .tsv (.gz, .zst)")
    delimiter = DELIMITERS[extension]
    if delimiter == "\t" and any(PLAIN_QUOTE.search(line) for _, line in open_lines(path)):
        return ((number, line.split(delimiter)) for number, line in open_lines(path) if line.strip())
    return quoted_rows(path, delimiter)
