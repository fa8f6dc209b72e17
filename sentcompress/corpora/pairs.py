"""Marked pairs of texts: Quora's question pairs and entity pairs, and the retrieval tasks made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sentcompress.corpora.byte_streams import format_extension
from sentcompress.corpora.collections import Collection, DataSet, in_memory, pick_split, stem
from sentcompress.corpora.delimited import counted, find_columns, quoted_rows
from sentcompress.corpora.text_files import HeldText, open_lines
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
    """Two texts and their mark: whether two questions are duplicates, or an entity matches a query."""

    first: str
    second: str
    match: bool


@dataclass(frozen=True)
class Pairs:
    """The pairs of a file, in its order; `empty` counts pairs that were dropped because a text was empty."""

    rows: tuple[Pair, ...]
    empty: int = 0


def read_pairs(path: Path, columns: tuple[str, str, str] = PAIR_COLUMNS) -> Pairs:
    """The pairs of a csv or tsv file whose header names two texts and a mark of 0 or 1.

    Other columns (id, qid1, qid2) are optional, since copies of the data set without them are in circulation. A
    tab-separated file is read with quoting if its quotes follow the rules of csv (Quora's own release does, and has
    line breaks inside questions), otherwise without.

    Args:
        path: the file.
        columns: names of the first text, the second text and the mark.

    Raises:
        InputError: a missing column, a mark other than 0 and 1 (with file and line), broken quoting, no pairs, or
            more text than fits in memory.
    """
    _check_file(path, columns)
    rows = _rows(path)
    _, header = next(rows, (0, []))
    places = find_columns(str(path), columns, [name.strip().lower() for name in header])
    pairs: list[Pair] = []
    held, empty = HeldText(path), 0
    for number, fields in rows:
        if len(fields) != len(header):
            raise InputError(
                f"{path}, line {number}: {len(fields)} fields, the header has {len(header)}",
                "is a quote or a delimiter missing on this line or before it?",
            )
        first, second, mark = (fields[place].strip() for place in places)
        if mark.lower() not in MARKS:
            raise InputError(f"{path}, line {number}: {columns[2]} is {mark[:40]!r}", "it must be 0 or 1")
        if first and second:
            held.add(first, second)
            pairs.append(Pair(first, second, MARKS[mark.lower()]))
        else:
            empty += 1
    if not pairs:
        raise InputError(f"{path} holds no pairs", f"a line is {columns[0]}, {columns[1]} and {columns[2]}")
    return Pairs(tuple(pairs), empty)


def pairs_data_set(path: Path) -> DataSet:
    """The data set of a file of question pairs.

    Raises:
        InputError: if there is no such file.
    """
    _check_file(path, PAIR_COLUMNS)

    def read() -> Collection:
        pairs = read_pairs(path)
        warnings = (_dropped(path, pairs),) if pairs.empty else ()
        collection = collection_of_pairs(pairs.rows, warnings)
        if not collection.judged:
            raise InputError(f"{path} marks no pair as duplicates", "at least one pair must be marked 1")
        return collection

    return DataSet("pairs", path.name, None, (path,), read)


def collection_of_pairs(pairs: Iterable[Pair], warnings: tuple[str, ...] = ()) -> Collection:
    """HPD's protocol: the corpus is the distinct second texts, the queries are the distinct first texts.

    Relevant to a query are the second texts of all its pairs that are marked as duplicates.
    """
    documents: dict[str, int] = {}
    queries: dict[str, dict[int, int]] = {}
    for pair in pairs:
        document = documents.setdefault(pair.second, len(documents))
        relevant = queries.setdefault(pair.first, {})
        if pair.match:
            relevant[document] = 1
    return Collection(in_memory(documents), tuple(queries), tuple(queries.values()), warnings)


def entities_data_set(path: Path, split: str | None) -> DataSet:
    """The data set of a file of (query, entity, label) pairs, or of a folder of such files, one per split.

    The catalogue is all distinct entities of the file, or of all files of the folder; the queries are those with a
    pair of label 1, in a folder those with such a pair in the file of the split.

    Raises:
        InputError: if there is no such file, folder or split.
    """
    if path.is_dir():
        files = {stem(file): file for file in sorted(path.iterdir()) if format_extension(file) in ("tsv", "csv")}
        if not files:
            raise InputError(f"{path} holds no .tsv or .csv file", f"a line is: {', '.join(ENTITY_COLUMNS)}")
        chosen = pick_split(str(path), list(files), split)
        paths, named = tuple(files.values()), files[chosen]
        return DataSet("entities", path.resolve().name, chosen, paths, lambda: _read_entities(paths, named))
    _check_file(path, ENTITY_COLUMNS)
    _delimiter(path)
    if split is not None:
        raise InputError(f"{path} is a single file and has no splits", "omit `split`, or give the folder")
    # Such files are called test.tsv, so the folder is part of the name. The extension distinguishes the file, which
    # has a catalogue of its own, from the same split of the folder.
    name = f"{path.resolve().parent.name}-{path.name}".lstrip("-")
    return DataSet("entities", name, None, (path,), lambda: _read_entities((path,), path))


def _read_entities(paths: tuple[Path, ...], chosen: Path) -> Collection:
    documents: dict[str, int] = {}
    relevant: dict[str, dict[int, int]] = {}
    queries: dict[str, None] = {}
    warnings = []
    for path in paths:
        pairs = read_pairs(path, ENTITY_COLUMNS)
        if pairs.empty:
            warnings.append(_dropped(path, pairs))
        for pair in pairs.rows:
            row = documents.setdefault(pair.second, len(documents))
            if pair.match:
                # A match in another split counts too, since the catalogue is that of all splits.
                relevant.setdefault(pair.first, {})[row] = 1
                if path == chosen:
                    queries.setdefault(pair.first)
    if not queries:
        raise InputError(f"{chosen} has no pair of label 1", "at least one pair must have label 1")
    grades = tuple(relevant[query] for query in queries)
    return Collection(in_memory(documents), tuple(queries), grades, tuple(warnings))


def _dropped(path: Path, pairs: Pairs) -> str:
    return f"{path}: dropped {counted(pairs.empty, 'pair')} with an empty text"


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with the number of the line on which each ends. Blank lines are skipped."""
    delimiter = _delimiter(path)
    if delimiter == "\t" and any(PLAIN_QUOTE.search(line) for _, line in open_lines(path)):
        return ((number, line.split(delimiter)) for number, line in open_lines(path) if line.strip())
    return quoted_rows(path, delimiter)


def _delimiter(path: Path) -> str:
    extension = format_extension(path)
    if extension not in DELIMITERS:
        raise InputError(f"{path}: cannot tell how its columns are separated", "name it .csv or .tsv (.gz, .zst)")
    return DELIMITERS[extension]


def _check_file(path: Path, columns: tuple[str, ...]) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a folder", f"give a file of pairs: {', '.join(columns)}")
    if not path.exists():
        raise InputError(f"no such file: {path}", "check the path")
