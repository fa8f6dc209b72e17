"""Rows of comma- and tab-separated files."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from sentcompress.corpora.text_files import LONGEST_LINE, BadRecords, Readable, as_source, open_lines
from sentcompress.errors import InputError


def plain_rows(
    readable: Readable, delimiter: str = "\t", bad: BadRecords | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of each row of a file without quoting. Blank lines are skipped.

    Raises:
        InputError: what `open_lines` raises.
    """
    for number, line in open_lines(readable, bad=bad):
        if line:
            yield number, line.split(delimiter)


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
                raise InputError(message, "is a quote missing in the lines before it?")
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
