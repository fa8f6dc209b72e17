"""The input of mining: numbered queries, the texts that answer them, and the corpus that is searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.byte_streams import as_source
from sentcompress.corpora.collections import Collection
from sentcompress.corpora.delimited import find_columns, listed
from sentcompress.corpora.originals import clean
from sentcompress.corpora.pairs import ENTITY_COLUMNS, MARKS, PAIR_COLUMNS, Pair, read_pairs
from sentcompress.corpora.readers import find_format, read_records, read_table
from sentcompress.corpora.records import BadRecordError, as_text
from sentcompress.corpora.sentence_index import SentenceIndex, sentence_hashes
from sentcompress.corpora.sentence_table import (
    ORIGINAL,
    SentenceTable,
    SentenceWriter,
)
from sentcompress.corpora.text_files import BadRecords, batches, is_encodable
from sentcompress.errors import InputError

Rows = npt.NDArray[np.int64]
# Columns of queries and positives; the first of these that a file has are used.
KNOWN_COLUMNS = (
    ("query", "positive"),
    ("anchor", "positive"),
    ("question", "answer"),
    ("query", "document"),
    ("query", "passage"),
    ("sent0", "sent1"),
)
# Columns with a mark: whether the second text answers the first.
MARKED_COLUMNS = (PAIR_COLUMNS, ENTITY_COLUMNS)
_BATCH = 20_000


@dataclass(frozen=True)
class Gathered:
    """The input of mining.

    Attributes:
        queries: distinct texts.
        pairs: [P, 2] distinct pairs of a query's number and the row of a text that answers it.
        own: [Q] the row of the corpus with the query's own text; -1 if there is none.
        corpus: the number of distinct texts.
        left_out: pairs that were dropped, counted by reason.
    """

    queries: Sequence[str]
    pairs: Rows
    own: Rows
    corpus: int
    left_out: Mapping[str, int]


@dataclass
class Gatherer:
    """Collects pairs, and writes each distinct text of the corpus to a temporary sentence table.

    Args:
        write: opens a file of that table by name.
    """

    write: Callable[[str], AbstractContextManager[Path]]
    left_out: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._index = SentenceIndex()
        self._writer = SentenceWriter(self.write)
        self._queries: dict[str, int] = {}
        self._pairs: dict[tuple[int, int], None] = {}

    def add_texts(self, texts: Sequence[str], origin: str) -> Rows:
        """The row of each text in the corpus, which is appended if it is new; -1 for empty texts."""
        cleaned = [_usable(text) for text in texts]
        taken = np.flatnonzero([bool(text) for text in cleaned])
        rows = np.full(len(texts), -1, dtype=np.int64)
        rows[taken], new = self._index.assign(sentence_hashes([cleaned[place] for place in taken]))
        for place in taken[new]:
            self._writer.add(cleaned[place], ORIGINAL, -1, origin)
        return rows

    def add_pair(self, query: str, row: int) -> None:
        """Add a query and the row of a text that answers it; the pair is dropped if either is empty."""
        text = _usable(query)
        if not text or row < 0:
            self.left_out["empty_side"] = self.left_out.get("empty_side", 0) + 1
            return
        self._pairs.setdefault((self._queries.setdefault(text, len(self._queries)), int(row)))

    def finish(self) -> Gathered:
        """Close the table and drop pairs of a text with itself.

        Raises:
            InputError: if no pair is left.
        """
        self._writer.finish()
        queries = list(self._queries)
        # With this limit, unknown texts get -1 in place of a new row.
        own = self._index.assign(sentence_hashes(queries), limit=self._index.rows)[0] if queries else np.empty(0, int)
        pairs = np.array(list(self._pairs), dtype=np.int64).reshape(-1, 2)
        same = own[pairs[:, 0]] == pairs[:, 1]
        left_out = {**self.left_out, **({"same_text": int(same.sum())} if same.any() else {})}
        if same.all():
            why = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items())
            raise InputError("there are no pairs of a query and a positive", f"dropped: {why}" if why else None)
        return Gathered(queries, pairs[~same], own, self._index.rows, left_out)


def gather_pairs(path: Path, columns: Sequence[str], gatherer: Gatherer, bad: BadRecords) -> None:
    """All pairs of a file. The second texts are the corpus, including those marked as not answering their query.

    Raises:
        InputError: see `read_positives`.
    """
    for batch in batches(read_positives(path, columns, bad), _BATCH, lambda pair: len(pair.first) + len(pair.second)):
        rows = gatherer.add_texts([pair.second for pair in batch], path.name)
        for pair, row in zip(batch, rows.tolist(), strict=True):
            if pair.match:
                gatherer.add_pair(pair.first, row)


def gather_texts(path: Path, gatherer: Gatherer, bad: BadRecords) -> None:
    """All texts of a file, in any format that `augment` reads, as part of the corpus.

    Raises:
        InputError: if the file cannot be read.
    """
    texts = (text for record in read_records(path, bad=bad) for text in record.texts)
    for batch in batches(texts, _BATCH, len):
        gatherer.add_texts(batch, path.name)


def gather_collection(collection: Collection, name: str, gatherer: Gatherer) -> None:
    """The documents and the relevant pairs of a collection."""
    rows = np.concatenate([gatherer.add_texts(texts, name) for texts in collection.corpus.texts()])
    for query, grades in zip(collection.queries, collection.grades, strict=True):
        for document in grades:
            if document < len(rows):  # otherwise judged, but missing from the corpus
                gatherer.add_pair(query, int(rows[document]))


def gather_triplets(table: SentenceTable, name: str, gatherer: Gatherer) -> None:
    """Anchors and positives of a sentence table's triplets; its positives and negatives are the corpus."""
    triplets = table.triplets()
    anchors, searched = np.unique(triplets[:, 0]), np.unique(triplets[:, 1:])
    rows, start = np.full(len(table), -1, dtype=np.int64), 0
    texts: dict[int, str] = {}
    for file, count in enumerate(table.file_rows):
        there = table.texts(file)
        mine = searched[(searched >= start) & (searched < start + count)]
        rows[mine] = gatherer.add_texts([there[row - start] for row in mine], name)
        texts |= {int(row): there[row - start] for row in anchors[(anchors >= start) & (anchors < start + count)]}
        start += count
    for anchor, positive in triplets[:, :2].tolist():
        gatherer.add_pair(texts[anchor], int(rows[positive]))


def read_positives(path: Path, columns: Sequence[str], bad: BadRecords) -> Iterator[Pair]:
    """The pairs of a csv, tsv, jsonl or parquet file, in its order; texts can be empty.

    Args:
        path: the file.
        columns: those of the query and the positive; empty for known ones. Question pairs and entity pairs have a
            mark, and pairs marked 0 are returned as pairs that do not match.
        bad: what to do with rows that cannot be read.

    Raises:
        InputError: if the file cannot be read, or its columns are unknown (the hint lists them).
    """
    known = columns or [name for names in (*MARKED_COLUMNS, *KNOWN_COLUMNS) for name in names]
    rows = iter(read_table(path, bad=bad, named=known))
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path} has no rows", "give a file of queries and positives")
    there = list(first[1])
    marked = next((known for known in MARKED_COLUMNS if not columns and set(known) <= set(there)), None)
    if marked and find_format(as_source(path), None) in ("csv", "tsv"):
        return _marked_file(path, marked)
    names = marked or _query_columns(path, columns, there)
    return _pairs(path, chain([first], rows), names, bad)


def _marked_file(path: Path, columns: tuple[str, str, str]) -> Iterator[Pair]:
    """Read as in evaluations: Quora's release has line breaks within quoted questions."""
    pairs = read_pairs(path, columns)
    yield from (Pair("", "", True) for _ in range(pairs.empty))
    yield from pairs.rows


def _pairs(
    path: Path, rows: Iterator[tuple[int, Mapping[str, object]]], names: tuple[str, ...], bad: BadRecords
) -> Iterator[Pair]:
    for number, row in rows:
        query, positive, *mark = [row.get(name) for name in names]
        if not isinstance(query, str) or not isinstance(positive, str):
            bad.add(f"{path}, line {number}: {names[0]} and {names[1]} are not both texts")
            continue
        try:
            word = as_text(mark[0], names[2]) if mark else "1"
        except BadRecordError as error:
            bad.add(f"{path}, line {number}: {error}")
            continue
        match = MARKS.get(word.lower())
        if match is None:
            bad.add(f"{path}, line {number}: {names[2]} is {word[:40]!r}, not 0 or 1")
            continue
        yield Pair(query, positive, match)


def _query_columns(path: Path, columns: Sequence[str], there: Sequence[str]) -> tuple[str, ...]:
    find_columns(str(path), columns, there)
    found = tuple(columns) or next((known for known in KNOWN_COLUMNS if set(known) <= set(there)), ())
    if not found:
        raise InputError(
            f"{path}: cannot tell which columns hold queries and positives",
            f"its columns: {listed(there)}; name those of the query and the positive with `columns`",
        )
    return found


def _usable(text: str) -> str:
    """The text as in a sentence table; empty if it contains a lone surrogate, which UTF-8 cannot encode."""
    cleaned = clean(text)
    return cleaned if cleaned.isascii() or is_encodable(cleaned) else ""
