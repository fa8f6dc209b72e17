"""Marked pairs of texts, and the retrieval task made of Quora's question pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.byte_streams import as_source, format_extension
from sentcompress.corpora.collections import Collection, CorpusChoice, DataSet, in_memory
from sentcompress.corpora.delimited import find_columns, lower_case, quoted_rows, without_separator_line
from sentcompress.corpora.readers import csv_delimiter
from sentcompress.corpora.text_files import HeldText, open_lines
from sentcompress.errors import InputError, path_hint
from sentcompress.quantities import counted

PAIR_COLUMNS = ("question1", "question2", "is_duplicate")
ENTITY_COLUMNS = ("query", "entity", "label")
# Which second questions are the corpus. AUTO takes the one of HPD's size if there is one, else ALL.
ALL, DUPLICATES, AUTO = "all", "duplicates", "auto"
CORPORA = (AUTO, ALL, DUPLICATES)
PAIRS_OF = {ALL: "all pairs", DUPLICATES: "the pairs marked as duplicates"}
# HPD's table 3: every memory figure divided by the bytes of a vector. Rounded to 0.01 MiB, it is exact up to one.
HPD_DOCUMENTS = 87_265
MARKS = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False}
CSV, TABBED = "csv", ("tsv", "tab", "txt")
# In a file with quoting, quotes inside a field are doubled and a quoted field begins and ends at a delimiter.
# An odd run of quotes between two other characters therefore shows that quotes are plain characters here.
PLAIN_QUOTE = re.compile(r'[^\t"](?:"")*"[^\t"]')


@dataclass(frozen=True)
class Pair:
    """Two texts and their mark: whether two questions are duplicates, or an entity matches a query.

    `language` is empty if the file names none.
    """

    first: str
    second: str
    match: bool
    language: str = ""


@dataclass(frozen=True)
class Pairs:
    """The pairs of a file, in its order; `empty` counts pairs that were dropped because a text was empty."""

    rows: tuple[Pair, ...]
    empty: int = 0


def read_pairs(path: Path, columns: tuple[str, str, str] = PAIR_COLUMNS, language_columns: Sequence[str] = ()) -> Pairs:
    """The pairs of a csv or tsv file whose header names two texts and a mark of 0 or 1.

    Other columns (id, qid1, qid2) are optional, since copies of the data set without them are in circulation. A
    tab-separated file is read with quoting if its quotes follow the rules of csv (Quora's own release does, and has
    line breaks inside questions), otherwise without.

    Args:
        path: the file.
        columns: names of the first text, the second text and the mark.
        language_columns: names of a column with the language; the first of them that the file has is read.

    Raises:
        InputError: a missing column, a mark other than 0 and 1 (with file and line), broken quoting, no pairs, or
            more text than fits in memory.
    """
    check_file(path, columns)
    rows = _rows(path)
    _, header = next(rows, (0, []))
    names = lower_case(header)
    places = find_columns(str(path), columns, names)
    spoken = next((names.index(name) for name in language_columns if name in names), None)
    pairs: list[Pair] = []
    held, empty = HeldText(path), 0
    for number, fields in rows:
        if len(fields) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(fields)} fields, the header has {len(header)}",
                "look for a missing quote or delimiter on this line or before it",
            )
        first, second, mark = (fields[place].strip() for place in places)
        if mark.lower() not in MARKS:
            raise InputError(f"{path}, line {number}: {columns[2]} is {mark[:40]!r}", "it must be 0 or 1")
        if first and second:
            held.add(first, second)
            language = "" if spoken is None else fields[spoken].strip()
            pairs.append(Pair(first, second, MARKS[mark.lower()], language))
        else:
            empty += 1
    if not pairs:
        raise InputError(f"{path} holds no pairs", f"a line is {columns[0]}, {columns[1]} and {columns[2]}")
    return Pairs(tuple(pairs), empty)


def pairs_data_set(path: Path, corpus: str = AUTO) -> DataSet:
    """The data set of a file of question pairs.

    Args:
        corpus: one of CORPORA.

    Raises:
        InputError: if there is no such file.
    """
    check_file(path, PAIR_COLUMNS)

    def read() -> Collection:
        pairs = read_pairs(path)
        warnings = (dropped(path, pairs),) if pairs.empty else ()
        collection = collection_of_pairs(pairs.rows, warnings, corpus)
        if not collection.judged:
            raise InputError(f"{path} marks no pair as duplicates", "at least one pair must be marked 1")
        return collection

    return DataSet("pairs", path.name, None, (path,), read)


def collection_of_pairs(pairs: Sequence[Pair], warnings: tuple[str, ...] = (), corpus: str = AUTO) -> Collection:
    """HPD's protocol: the corpus is the distinct second texts, the queries are the distinct first texts.

    Relevant to a query are the second texts of all its pairs that are marked as duplicates.

    Args:
        corpus: ALL for the second texts of all pairs, DUPLICATES for those of pairs marked as duplicates, AUTO for the
            one that has HPD_DOCUMENTS, otherwise all.
    """
    choice = _chosen(pairs, corpus)
    documents: dict[str, int] = {}
    queries: dict[str, dict[int, int]] = {}
    for pair in pairs:
        relevant = queries.setdefault(pair.first, {})
        if pair.match:
            relevant[documents.setdefault(pair.second, len(documents))] = 1
        elif choice.taken == ALL:
            documents.setdefault(pair.second, len(documents))
    return Collection(in_memory(documents), tuple(queries), tuple(queries.values()), warnings, choice)


def _chosen(pairs: Sequence[Pair], corpus: str) -> CorpusChoice:
    every = {pair.second: False for pair in pairs} | {pair.second: True for pair in pairs if pair.match}
    sizes = {ALL: len(every), DUPLICATES: sum(every.values())}
    fitting = [name for name, size in sizes.items() if abs(size - HPD_DOCUMENTS) <= 1]
    taken = (fitting or [ALL])[0] if corpus == AUTO else corpus
    return CorpusChoice(taken, PAIRS_OF[taken], sizes, HPD_DOCUMENTS, taken in fitting)


def dropped(path: Path, pairs: Pairs) -> str:
    """The warning of pairs without a text."""
    return f"{path}: dropped {counted(pairs.empty, 'pair')} with an empty text"


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line on which each ends. Blank lines are skipped."""
    delimiter = delimiter_of(path)
    if delimiter == "\t" and any(PLAIN_QUOTE.search(line) for _, line in open_lines(path)):
        lines = ((number, line.split(delimiter)) for number, line in open_lines(path) if line.strip())
        return without_separator_line(lines)
    return without_separator_line(quoted_rows(path, delimiter))


def delimiter_of(path: Path) -> str:
    """The delimiter by the file's extension, that of a csv file by its first line.

    Raises:
        InputError: for an unknown extension, or a csv file that cannot be read.
    """
    extension = format_extension(path)
    if extension == CSV:
        return csv_delimiter(as_source(path))
    if extension not in TABBED:
        raise InputError(f"{path}: cannot tell how its columns are separated", "name it .csv or .tsv (.gz, .zst)")
    return "\t"


def check_file(path: Path, columns: tuple[str, ...]) -> None:
    """Raise InputError if there is no such file of pairs."""
    if path.is_dir():
        raise InputError(f"{path} is a folder", f"give a file of pairs: {', '.join(columns)}")
    if not path.exists():
        raise InputError(f"no such file: {path}", path_hint(path))
