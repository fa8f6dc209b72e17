"""Which text answers which query, and what is searched for texts that do not: the start of mining hard negatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sentcompress.corpora.collections import Collection
from sentcompress.corpora.distinct import SentenceIndex, sentence_hashes
from sentcompress.corpora.holding import batches
from sentcompress.corpora.originals import clean
from sentcompress.corpora.positives import read_positives
from sentcompress.corpora.readers import read_records
from sentcompress.corpora.sentence_table import ORIGINAL, SentenceTable, SentenceWriter
from sentcompress.corpora.text_files import BadRecords, is_encodable
from sentcompress.errors import InputError

Rows = npt.NDArray[np.int64]
_BATCH = 20_000


@dataclass(frozen=True)
class Gathered:
    """What to mine from.

    Attributes:
        queries: distinct texts.
        pairs: [P, 2] distinct pairs of a query's number and the row of a text that answers it.
        own: [Q] the row of the corpus that holds the query's own text, -1 where there is none.
        corpus: number of distinct texts.
        left_out: pairs that were not taken, counted by reason.
    """

    queries: Sequence[str]
    pairs: Rows
    own: Rows
    corpus: int
    left_out: Mapping[str, int]


@dataclass
class Gatherer:
    """Collects pairs, and writes every distinct text of the corpus once, into a sentence table that is dropped later.

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
        """The row of each text in the corpus, new ones appended; -1 for those without content."""
        cleaned = [_usable(text) for text in texts]
        taken = np.flatnonzero([bool(text) for text in cleaned])
        rows = np.full(len(texts), -1, dtype=np.int64)
        rows[taken], new = self._index.assign(sentence_hashes([cleaned[place] for place in taken]))
        for place in taken[new]:
            self._writer.add(cleaned[place], ORIGINAL, -1, origin)
        return rows

    def add_pair(self, query: str, row: int) -> None:
        """A query and the row of a text that answers it."""
        text = _usable(query)
        if not text or row < 0:
            self.left_out["empty_side"] = self.left_out.get("empty_side", 0) + 1
            return
        self._pairs.setdefault((self._queries.setdefault(text, len(self._queries)), int(row)))

    def finish(self) -> Gathered:
        """Close the table; pairs of a text with itself are left out.

        Raises:
            InputError: if there is no pair.
        """
        self._writer.finish()
        queries = list(self._queries)
        # No room for new ones: what is unknown gets -1.
        own = self._index.assign(sentence_hashes(queries), limit=self._index.rows)[0] if queries else np.empty(0, int)
        pairs = np.array(list(self._pairs), dtype=np.int64).reshape(-1, 2)
        same = own[pairs[:, 0]] == pairs[:, 1]
        left_out = {**self.left_out, **({"same_text": int(same.sum())} if same.any() else {})}
        if same.all():
            why = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items())
            raise InputError("there are no pairs of a query and a positive", f"left out: {why}" if why else None)
        return Gathered(queries, pairs[~same], own, self._index.rows, left_out)


def gather_pairs(path: Path, columns: Sequence[str], gatherer: Gatherer, bad: BadRecords) -> None:
    """All pairs of a file; the second texts are the corpus, those that are marked as no answer as well.

    Raises:
        InputError: whatever is wrong with the file; unknown columns, with those that are there.
    """
    for batch in batches(read_positives(path, columns, bad), _BATCH, lambda pair: len(pair.first) + len(pair.second)):
        rows = gatherer.add_texts([pair.second for pair in batch], path.name)
        for pair, row in zip(batch, rows.tolist(), strict=True):
            if pair.duplicate:
                gatherer.add_pair(pair.first, row)


def gather_texts(path: Path, gatherer: Gatherer, bad: BadRecords) -> None:
    """All texts of a file of any format that `augment` reads, as part of the corpus.

    Raises:
        InputError: whatever is wrong with the file.
    """
    texts = (text for record in read_records(path, bad=bad) for text in record.texts)
    for batch in batches(texts, _BATCH, len):
        gatherer.add_texts(batch, path.name)


def gather_collection(collection: Collection, name: str, gatherer: Gatherer) -> None:
    """The documents and the judged pairs of a collection."""
    rows = np.concatenate([gatherer.add_texts(texts, name) for texts in collection.corpus.texts()])
    for query, grades in zip(collection.queries, collection.grades, strict=True):
        for document in grades:
            if document < len(rows):  # judged and not in the corpus
                gatherer.add_pair(query, int(rows[document]))


def gather_triplets(table: SentenceTable, name: str, gatherer: Gatherer) -> None:
    """Anchors and positives of a sentence table's triplets; positives and negatives are the corpus."""
    triplets = table.triplets()
    anchors, searched = np.unique(triplets[:, 0]), np.unique(triplets[:, 1:])
    rows, start = np.full(len(table), -1, dtype=np.int64), 0
    texts: dict[int, str] = {}
    for shard, count in enumerate(table.shard_rows):
        there = table.texts(shard)
        mine = searched[(searched >= start) & (searched < start + count)]
        rows[mine] = gatherer.add_texts([there[row - start] for row in mine], name)
        texts |= {int(row): there[row - start] for row in anchors[(anchors >= start) & (anchors < start + count)]}
        start += count
    for anchor, positive in triplets[:, :2].tolist():
        gatherer.add_pair(texts[anchor], int(rows[positive]))


def _usable(text: str) -> str:
    """The text as a sentence table has it; nothing where it holds half a character, which no file can."""
    cleaned = clean(text)
    return cleaned if cleaned.isascii() or is_encodable(cleaned) else ""
