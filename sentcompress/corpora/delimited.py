"""Comma- and tab-separated files: their rows, and columns and numbers in them."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Self

from sentcompress.corpora.byte_streams import Readable, as_source
from sentcompress.corpora.text_files import LONGEST_LINE, BadRecords, open_lines
from sentcompress.errors import InputError
from sentcompress.quantities import counted

# A file of another format may have a header of any length.
_LISTED = 20
_SHOWN = 60
# All sensible scores and grades are within these bounds; squares of other numbers overflow or underflow.
_LARGEST_NUMBER = 1e9
_SMALLEST_NUMBER = 1e-9
# What Excel reads as the name of the separator, if it is the first line of a csv file. Some programs quote it. Split at
# this separator, it is `sep=` and an empty field.
SEPARATOR = re.compile(r'"?sep=([,;|:\t]?)"?', re.IGNORECASE)
USABLE = "a number from -1e9 to 1e9"


class Spelt(str):
    """The name by which a column is looked up; messages show the one in the file, `written`."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, name: str, written: str) -> Self:
        """A name that stands for the one in the file."""
        found = super().__new__(cls, name)
        found.written = written
        return found


def lower_case(header: Iterable[str]) -> list[str]:
    """The names of columns in lower case, without the blanks around them."""
    return [Spelt(name.strip().lower(), name.strip()) for name in header]


def written(name: str) -> str:
    """A column's name as in the file."""
    return name.written if isinstance(name, Spelt) else name


def tabbed_rows(readable: Readable, bad: BadRecords | None = None) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each row of a tab-separated file without quoting. Blank lines are skipped.

    Raises:
        InputError: what `open_lines` raises.
    """
    for number, line in open_lines(readable, bad=bad):
        if line:
            yield number, line.split("\t")


def quoted_rows(
    readable: Readable, delimiter: str = ",", bad: BadRecords | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Rows of a file with quoting, where fields can contain delimiters, quotes and line breaks.

    Each row comes with the number of its last line. Blank lines are skipped.

    Raises:
        InputError: what `open_lines` raises; broken quoting; a row longer than LONGEST_LINE, for example because a
            quote is never closed.
    """
    source, bad = as_source(readable), bad or BadRecords()
    csv.field_size_limit(LONGEST_LINE)
    last = length = 0

    def lines() -> Iterator[str]:
        nonlocal last, length
        for number, line in open_lines(source, bad=bad):
            last = number
            length += len(line) + 1
            # A single line can have the full length; a row of several lines cannot exceed it.
            if length > LONGEST_LINE + 1:
                message = f"{source.name}, line {number}: a row longer than {LONGEST_LINE} characters"
                raise InputError(message, "look for a missing quote in the lines before it")
            yield line + "\n"

    rows = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            bad.add(f"{source.name}, line {last}: broken quoting ({error})")
            continue
        finally:
            length = 0
        if row:
            yield last, row


def without_separator_line(rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str]]]:
    """The rows of a csv file without a first one that only names the separator, such as Excel's `sep=;`."""
    for place, (number, row) in enumerate(rows):
        if place or any(row[1:]) or not SEPARATOR.fullmatch(row[0]):
            yield number, row


def headed_rows(
    path: Path, columns: Sequence[str], form: str, bad: BadRecords, *, only: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Line number and the fields of `columns` of each line of a tab-separated file. Blank lines are skipped.

    The first line is a header if it has the name of the first column; then the columns can have any order, otherwise
    they have that of `columns`.

    Args:
        only: whether a file without a header may have no other columns, which could come before these.

    Raises:
        InputError: what `open_lines` raises; a missing column. Lines with too few fields, or too many, go through
            `bad`, with the hint `form`.
    """
    places: list[int] = []
    most: int | None = None
    for number, line in open_lines(path, bad=bad):
        if not line.strip():
            continue
        fields = line.split("\t")
        if not places:
            names = lower_case(fields)
            if columns[0] in names:
                places = find_columns(str(path), columns, names)
                continue
            places = list(range(len(columns)))
            most = len(columns) if only else None
        if len(fields) <= max(places):
            bad.add(f"{path}, line {number}: {wrong_width(fields, max(places) + 1)}", form)
            continue
        if most is not None and any(map(str.strip, fields[most:])):
            named = f"{form}; with other columns, the first line must name them"
            bad.add(f"{path}, line {number}: {wrong_width(fields, len(columns))}", named)
            continue
        yield number, [fields[place] for place in places]


def find_columns(name: str, wanted: Sequence[str], header: Sequence[str]) -> list[int]:
    """The positions of the wanted columns in a header.

    Raises:
        InputError: if one is missing; the hint lists the columns of the file.
    """
    missing = [column for column in wanted if column not in header]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        message = f"{name} has no column{plural} {', '.join(map(repr, missing))}"
        spelt = {name.casefold(): written(name) for name in header if len(name) <= _SHOWN}
        near = get_close_matches(missing[0].casefold(), spelt, n=1)
        raise InputError(message, f"{f'did you mean {spelt[near[0]]}? ' if near else ''}its columns: {listed(header)}")
    return [list(header).index(column) for column in wanted]


def wrong_width(fields: Sequence[str], expected: int) -> str:
    """What is wrong with a row that has another number of fields than expected."""
    return f"found {counted(len(fields), 'column')}, expected {expected}"


def refuse_repeated(name: str, header: Iterable[str]) -> None:
    """Raise InputError if two columns have the same name; columns without a name do not count."""
    repeated = sorted(column for column, count in Counter(header).items() if column and count > 1)
    if repeated:
        raise InputError(f"{name} has several columns of the same name: {listed(repeated)}", "rename them")


def listed(names: Iterable[str]) -> str:
    """Names for an error message, as written in the file: at most _LISTED, each cut to _SHOWN characters."""
    there = list(map(written, names))
    shown = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..." for name in there[:_LISTED]]
    more = [f"and {len(there) - _LISTED} more"] if len(there) > _LISTED else []
    return ", ".join([*shown, *more]) or "none"


def told_unread(unread: Mapping[str, Sequence[str]]) -> str:
    """Columns with text that are not read, by table, in words."""
    first, *others = unread
    tables = f"{first} and {counted(len(others), 'other table')}" if others else first
    columns = listed(dict.fromkeys(column for one in unread.values() for column in one))
    return f"{tables}: columns of text that are not read: {columns}; to read them, name all columns with `column`"


def parse_number(text: str) -> float | None:
    """The number in a field, with tiny ones as 0; None if it is not USABLE, e.g. NaN or infinity."""
    try:
        # float() would accept 1_000, which is Python syntax and not a score.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    if abs(value) < _SMALLEST_NUMBER:
        return 0.0
    return value if abs(value) <= _LARGEST_NUMBER else None
