"""The first part of the sentence table: each distinct sentence once, and the triplets of labelled pairs."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.corpora.records import Record, Relation
from sentcompress.corpora.sentence_index import SentenceIndex, sentence_hashes
from sentcompress.corpora.sentence_table import (
    ORIGINAL,
    TRIPLET_SCHEMA,
    TRIPLETS,
    SentenceWriter,
)
from sentcompress.corpora.text_files import LONE_SURROGATE, BadRecords, batches, is_encodable
from sentcompress.progress import Reporter

_BATCH = 20_000
_AS_LABEL = {
    Relation.ENTAILMENT: Relation.ENTAILMENT,
    Relation.CONTRADICTION: Relation.CONTRADICTION,
    Relation.PARAPHRASE: Relation.ENTAILMENT,
    Relation.NOT_PARAPHRASE: Relation.CONTRADICTION,
}
_SYMMETRIC = (Relation.PARAPHRASE, Relation.NOT_PARAPHRASE)


@dataclass(frozen=True)
class Limits:
    """Which sentences are kept: by their length in characters, and how many in total."""

    shortest: int = 1
    longest: int | None = None
    sentences: int | None = None

    def fault(self, text: str) -> str | None:
        """Why a sentence is dropped; None if it is kept."""
        if not text:
            return "blank"
        if len(text) < self.shortest:
            return "too_short"
        if self.longest is not None and len(text) > self.longest:
            return "too_long"
        return None


class Texts(Protocol):
    """An input, or a part of one."""

    @property
    def origin(self) -> str: ...

    def records(self, bad: BadRecords) -> Iterator[Record]: ...


@dataclass
class ReadCounts:
    """What was read, and what was dropped, by reason; `mix` has the share taken of each input, if not all."""

    originals: int = 0
    files: int = 0
    triplets: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    mix: dict[str, Any] = field(default_factory=dict)

    def skip(self, why: str, count: int = 1) -> None:
        if count:
            self.skipped[why] = self.skipped.get(why, 0) + count


def clean(text: str) -> str:
    """The text with each run of white space, including line breaks, as one space; stripped."""
    return " ".join(text.split())


class TripletCollector:
    """Collects labelled pairs and complete triplets by row number, 17 and 24 bytes each (34 for paraphrases).

    Pairs give one triplet per premise, as in SimCSE: with its first entailment and its first contradiction in file
    order. A premise without one of them gives none. A paraphrase counts as an entailment in both directions, a pair
    marked as no paraphrase as a contradiction in both. Complete triplets are kept unchanged.
    """

    def __init__(self) -> None:
        self._premises = array("q")
        self._hypotheses = array("q")
        self._labels = array("b")
        self._complete = array("q")

    def add(self, rows: Sequence[int], relation: Relation) -> None:
        """Add one record; a row below 0 is a sentence that was dropped, and the record is ignored."""
        if min(rows) < 0 or len(set(rows)) < len(rows):
            return
        if relation is Relation.TRIPLET:
            self._complete.extend(rows)
        elif relation in _AS_LABEL:
            for premise, hypothesis in (rows, rows[::-1]) if relation in _SYMMETRIC else (rows,):
                self._premises.append(premise)
                self._hypotheses.append(hypothesis)
                self._labels.append(int(_AS_LABEL[relation]))

    def finish(self) -> npt.NDArray[np.int64]:
        """All triplets, [n, 3] rows of anchor, positive and negative: of pairs by premise, then the complete ones."""
        premises = np.frombuffer(self._premises, dtype=np.int64)
        hypotheses = np.frombuffer(self._hypotheses, dtype=np.int64)
        labels = np.frombuffer(self._labels, dtype=np.int8)
        chosen = []
        for relation in (Relation.ENTAILMENT, Relation.CONTRADICTION):
            mine = labels == int(relation)
            anchors, first = np.unique(premises[mine], return_index=True)
            chosen.append((anchors, hypotheses[mine][first]))
        (with_positive, positives), (with_negative, negatives) = chosen
        anchors, left, right = np.intersect1d(with_positive, with_negative, assume_unique=True, return_indices=True)
        paired = np.stack([anchors, positives[left], negatives[right]], axis=1)
        paired = paired[paired[:, 1] != paired[:, 2]]
        complete = np.frombuffer(self._complete, dtype=np.int64).reshape(-1, 3)
        together = np.concatenate([paired, complete])
        _, first = np.unique(together, axis=0, return_index=True)
        return together[np.sort(first)]


def write_originals(
    inputs: Iterable[Texts],
    write: Callable[[str], AbstractContextManager[Path]],
    limits: Limits,
    bad: BadRecords,
    reporter: Reporter,
) -> ReadCounts:
    """Write the distinct sentences of all inputs in the order of their first occurrence, and `triplets.parquet`.

    Raises:
        InputError: if an input cannot be read.
    """
    counts, index, triplets, writer = ReadCounts(), SentenceIndex(), TripletCollector(), SentenceWriter(write)
    with reporter.track("reading") as task:
        for origin, batch in _batches(inputs, bad):
            before = index.rows
            _add(batch, origin, limits, index, writer, triplets, counts)
            task.advance(index.rows - before)
            if limits.sentences is not None and index.rows >= limits.sentences:
                break
    writer.finish()
    counts.originals, counts.files = index.rows, writer.files
    counts.skip("bad_lines", bad.count)
    rows = triplets.finish()
    counts.triplets = len(rows)
    if len(rows):
        with write(TRIPLETS) as path:
            columns = [pa.array(rows[:, place], pa.int64()) for place in range(3)]
            pq.write_table(pa.table(columns, schema=TRIPLET_SCHEMA), path, compression="zstd")
    return counts


def _batches(inputs: Iterable[Texts], bad: BadRecords) -> Iterator[tuple[str, list[Record]]]:
    """The records of all inputs in batches, each with the origin of its input."""
    for given in inputs:
        for batch in batches(_encodable(given, bad), _BATCH, _characters):
            yield given.origin, batch


def _encodable(given: Texts, bad: BadRecords) -> Iterator[Record]:
    """The records with clean texts; those with a lone surrogate are bad lines."""
    for number, record in enumerate(given.records(bad), 1):
        texts = tuple([clean(text) for text in record.texts])
        whole = "".join((*texts, record.domain))
        if whole.isascii() or is_encodable(whole):
            yield record if texts == record.texts else Record(texts, record.relation, record.domain)
        else:
            bad.add(f"{given.origin}, record {number}: {LONE_SURROGATE}")


def _characters(record: Record) -> int:
    return sum(map(len, record.texts)) + len(record.domain)


def _add(
    batch: list[Record],
    origin: str,
    limits: Limits,
    index: SentenceIndex,
    writer: SentenceWriter,
    triplets: TripletCollector,
    counts: ReadCounts,
) -> None:
    kept = [record for record in batch if record.relation is not Relation.NO_GOLD]
    counts.skip("no_gold_label", len(batch) - len(kept))
    texts = [text for record in kept for text in record.texts]
    domains = [record.domain for record in kept for _ in record.texts]
    faults = [limits.fault(text) for text in texts]
    for fault, count in Counter(filter(None, faults)).items():
        counts.skip(fault, count)
    taken = np.flatnonzero([fault is None for fault in faults])
    rows = np.full(len(texts), -1, dtype=np.int64)
    found, new = index.assign(sentence_hashes([texts[place] for place in taken]), limits.sentences)
    rows[taken] = found
    counts.skip("duplicates", int((found >= 0).sum()) - len(new))
    for place in taken[new]:
        writer.add(texts[place], ORIGINAL, -1, origin, domains[place])
    listed, start = rows.tolist(), 0
    for record in kept:
        stop = start + len(record.texts)
        if record.relation is not Relation.UNRELATED:
            triplets.add(listed[start:stop], record.relation)
        start = stop
