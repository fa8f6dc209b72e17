"""From records to the first part of the sentence table: each distinct sentence once, and the triplets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.corpora.distinct import SentenceIndex, sentence_hashes
from sentcompress.corpora.holding import batches
from sentcompress.corpora.inputs import Input
from sentcompress.corpora.records import Record, Relation
from sentcompress.corpora.sentence_table import ORIGINAL, TRIPLET_SCHEMA, TRIPLETS, SentenceWriter
from sentcompress.corpora.text_files import HALF_A_CHARACTER, BadRecords, is_encodable
from sentcompress.corpora.triplets import TripletCollector
from sentcompress.progress import Reporter

_BATCH = 20_000


@dataclass(frozen=True)
class Limits:
    """Which sentences are taken: length in characters, and how many in all."""

    shortest: int = 1
    longest: int | None = None
    sentences: int | None = None

    def fault(self, text: str) -> str | None:
        """Why a sentence is left out; None if it is taken."""
        if not text:
            return "blank"
        if len(text) < self.shortest:
            return "too_short"
        if self.longest is not None and len(text) > self.longest:
            return "too_long"
        return None


@dataclass
class Tally:
    """What was read and what was left out."""

    originals: int = 0
    shards: int = 0
    triplets: int = 0
    skipped: dict[str, int] = field(default_factory=dict)

    def skip(self, why: str, count: int = 1) -> None:
        if count:
            self.skipped[why] = self.skipped.get(why, 0) + count


def clean(text: str) -> str:
    """Runs of white space, line ends included, become one space; none at the ends."""
    return " ".join(text.split())


def write_originals(
    inputs: Iterable[Input],
    write: Callable[[str], AbstractContextManager[Path]],
    limits: Limits,
    bad: BadRecords,
    reporter: Reporter,
) -> Tally:
    """Write the distinct sentences of all inputs in the order of their first occurrence, and `triplets.parquet`.

    Raises:
        InputError: whatever is wrong with an input.
    """
    tally, index, triplets, writer = Tally(), SentenceIndex(), TripletCollector(), SentenceWriter(write)
    with reporter.track("reading") as task:
        for given in inputs:
            for batch in batches(_encodable(given, bad), _BATCH, _characters):
                before = index.rows
                _add(batch, given.origin, limits, index, writer, triplets, tally)
                task.advance(index.rows - before)
                if limits.sentences is not None and index.rows >= limits.sentences:
                    break
    writer.finish()
    tally.originals, tally.shards = index.rows, writer.shards
    tally.skip("bad", bad.count)
    rows = triplets.finish()
    tally.triplets = len(rows)
    if len(rows):
        with write(TRIPLETS) as path:
            columns = [pa.array(rows[:, place], pa.int64()) for place in range(3)]
            pq.write_table(pa.table(columns, schema=TRIPLET_SCHEMA), path, compression="zstd")
    return tally


def _encodable(given: Input, bad: BadRecords) -> Iterator[Record]:
    """The records with clean texts; those with halves of characters are bad lines."""
    for number, record in enumerate(given.records(bad), 1):
        texts = tuple([clean(text) for text in record.texts])
        whole = "".join((*texts, record.domain))
        if whole.isascii() or is_encodable(whole):
            yield record if texts == record.texts else Record(texts, record.relation, record.domain)
        else:
            bad.add(f"{given.origin}, record {number}: {HALF_A_CHARACTER}")


def _characters(record: Record) -> int:
    return sum(map(len, record.texts)) + len(record.domain)


def _add(
    batch: list[Record],
    origin: str,
    limits: Limits,
    index: SentenceIndex,
    writer: SentenceWriter,
    triplets: TripletCollector,
    tally: Tally,
) -> None:
    kept = [record for record in batch if record.relation is not Relation.NO_GOLD]
    tally.skip("no_gold_label", len(batch) - len(kept))
    texts = [text for record in kept for text in record.texts]
    domains = [record.domain for record in kept for _ in record.texts]
    faults = [limits.fault(text) for text in texts]
    for fault, count in Counter(filter(None, faults)).items():
        tally.skip(fault, count)
    taken = np.flatnonzero([fault is None for fault in faults])
    rows = np.full(len(texts), -1, dtype=np.int64)
    found, new = index.assign(sentence_hashes([texts[place] for place in taken]), limits.sentences)
    rows[taken] = found
    tally.skip("repeated", int((found >= 0).sum()) - len(new))
    for place in taken[new]:
        writer.add(texts[place], ORIGINAL, -1, origin, domains[place])
    listed, start = rows.tolist(), 0
    for record in kept:
        stop = start + len(record.texts)
        if record.relation is not Relation.UNRELATED:
            triplets.add(listed[start:stop], record.relation)
        start = stop
