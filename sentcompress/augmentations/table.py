"""Adds augmented rows to the originals of a sentence table, piece by piece, so that an interrupted run can resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.augmentations.base import AugmenterSpec
from sentcompress.augmentations.workers import Piece, augment_pieces
from sentcompress.corpora.originals import Limits, ReadCounts, clean
from sentcompress.corpora.sentence_index import SentenceIndex, sentence_hashes
from sentcompress.corpora.sentence_table import (
    ORIGINAL,
    SentenceTable,
    SentenceWriter,
    read_columns,
)
from sentcompress.progress import Reporter, Task
from sentcompress.store import SCAFFOLD, Build

# The folder of unfinished work inside the artifact's partial folder.
PIECES = f"{SCAFFOLD}/pieces"
# An interrupted run loses at most one piece per worker (about 20 seconds of apertium). Starting apertium for a piece
# takes as long as 100 sentences.
_LARGEST_PIECE = 5_000
_SMALLEST_PIECE = 1_000
# Enough pieces for many cores to finish at about the same time.
_PIECES = 64


@dataclass(frozen=True)
class AugmentationPlan:
    """The originals of a table, and the numbers of copies by augmentation, in table order.

    Attributes:
        files: files of the table.
        copies: (source, number of copies) of each augmentation.
    """

    originals: int
    files: int
    copies: tuple[tuple[str, int], ...]

    @property
    def piece_rows(self) -> int:
        """Sentences per piece. Independent of the number of workers, so that a run with another number can resume."""
        return max(_SMALLEST_PIECE, min(_LARGEST_PIECE, -(-self.originals // _PIECES)))

    def piece_sizes(self, table: SentenceTable) -> list[int]:
        """The number of sentences of each piece. No piece crosses a file boundary of the table."""
        step = self.piece_rows
        return [min(step, rows - start) for rows in table.file_rows[: self.files] for start in range(0, rows, step)]


@dataclass(frozen=True)
class Pieces:
    """Files of pieces, and the table that they are made of.

    Attributes:
        table: the folder of the originals.
        build: where pieces are written.
        folder: the folder of the pieces in the build.
        numbers: the numbers of the pieces to make; None: all.
    """

    table: Path
    build: Build
    folder: str = PIECES
    numbers: range | None = None

    def wants(self, number: int) -> bool:
        return self.numbers is None or number in self.numbers


@dataclass
class Augmented:
    """The result: rows of the whole table, new rows by source, dropped sentences by reason."""

    rows: int = 0
    by_source: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)


def make_pieces(
    plan: AugmentationPlan, specs: Sequence[AugmenterSpec], pieces: Pieces, workers: int, reporter: Reporter
) -> dict[str, str]:
    """Augment every original and store each piece in a file; pieces of an earlier run are kept.

    Returns:
        Source -> the note of its augmenter, if it has one and did something here.

    Raises:
        SentcompressError: from an augmenter.
    """
    notes: dict[str, str] = {}
    sizes = plan.piece_sizes(SentenceTable(pieces.table))
    rows = sum(size for number, size in enumerate(sizes) if pieces.wants(number))
    with ExitStack() as stack:
        tasks = {
            source: stack.enter_context(reporter.track(source, total=rows * copies)) for source, copies in plan.copies
        }
        shared = {spec.source: spec for spec in specs if spec.in_workers}
        if shared:
            count = sum(1 for _ in _unmade(plan, pieces, shared, {}))
            missing = _missing(plan, pieces, shared, tasks)
            # Closed at once if writing fails, so that the workers end first.
            with closing(augment_pieces(shared, missing, min(workers, count))) as results:
                for piece, new in results:
                    _keep(piece, new, pieces, tasks)
        for spec in specs:
            if not spec.in_workers and (note := _augment_here(spec, plan, pieces, tasks, reporter)):
                notes[spec.source] = note
    return notes


def append_pieces(
    plan: AugmentationPlan, build: Build, find: Callable[[Piece], Path], limits: Limits, reporter: Reporter
) -> Augmented:
    """Append the augmented sentences to the table, without duplicates.

    Args:
        find: where a piece was stored.
    """
    total = plan.originals * (1 + sum(copies for _, copies in plan.copies))
    table, index, result = SentenceTable(build.path), SentenceIndex(), Augmented()
    writer = SentenceWriter(build.write, first_row=plan.originals, first_file=plan.files)
    with reporter.track("dropping duplicates", total=total) as task:
        for file in range(plan.files):
            texts = table.texts(file)
            index.assign(sentence_hashes(texts))
            task.advance(len(texts))
        for source, copies in plan.copies:
            result.by_source[source] = 0
            for copy in range(1, copies + 1):
                origins, domains = (
                    _pieces(plan, table, source, copy, column) for column in (table.origins, table.domain_names)
                )
                for piece, told in zip(origins, domains, strict=True):
                    _append(piece, told.texts, find(piece), limits, index, writer, result)
                    task.advance(len(piece.texts))
        writer.finish()
    result.rows = writer.rows
    return result


def facts_of(read: ReadCounts, augmented: Augmented, notes: Mapping[str, str]) -> dict[str, Any]:
    """What the manifest says of the table."""
    return {
        "rows": augmented.rows,
        "originals": read.originals,
        "by_source": {ORIGINAL: read.originals, **augmented.by_source},
        "triplets": read.triplets,
        **({"computed": dict(notes)} if notes else {}),
        **({"mix": read.mix} if read.mix else {}),
        "skipped": {**read.skipped, **augmented.skipped},
    }


def _append(
    piece: Piece,
    domains: list[str],
    path: Path,
    limits: Limits,
    index: SentenceIndex,
    writer: SentenceWriter,
    result: Augmented,
) -> None:
    origins = piece.texts
    texts = [clean(text) for text in read_columns(path).column(0).to_pylist()]
    made = [place for place, text in enumerate(texts) if text]
    fit = [place for place in made if limits.fault(texts[place]) is None]
    _, new = index.assign(sentence_hashes([texts[place] for place in fit]))
    for place in (fit[number] for number in new):
        writer.add(texts[place], piece.augmentation, piece.first_row + place, origins[place], domains[place])
    result.by_source[piece.augmentation] += len(new)
    for why, count in (("duplicates", len(fit) - len(new)), ("outside_length_limits", len(made) - len(fit))):
        if count:
            key = f"{piece.augmentation}_{why}"
            result.skipped[key] = result.skipped.get(key, 0) + count


@dataclass(frozen=True)
class _Place:
    """Where a piece's sentences are: the file of the table, and their first row in this file and in the table."""

    number: int
    file: int
    start: int
    rows: int
    first_row: int


def _places(plan: AugmentationPlan, table: SentenceTable) -> Iterator[_Place]:
    number = first_row = 0
    for file, rows in enumerate(table.file_rows[: plan.files]):
        for start in range(0, rows, plan.piece_rows):
            yield _Place(number, file, start, min(plan.piece_rows, rows - start), first_row + start)
            number += 1
        first_row += rows


def _pieces(
    plan: AugmentationPlan, table: SentenceTable, augmentation: str, copy: int, column: Callable[[int], list[str]]
) -> Iterator[Piece]:
    """The pieces of all originals, each with its slice of a column of the table."""
    for file, places in groupby(_places(plan, table), lambda place: place.file):
        values = column(file)
        for place in places:
            part = values[place.start : place.start + place.rows]
            yield Piece(place.number, augmentation, copy, place.first_row, part)


def _unmade(
    plan: AugmentationPlan, pieces: Pieces, wanted: Mapping[str, AugmenterSpec], tasks: Mapping[str, Task]
) -> Iterator[tuple[_Place, str, int]]:
    """The place, source and copy of each piece that is to be made; existing ones count as progress."""
    kinds = [(source, copy) for source, copies in plan.copies for copy in range(1, copies + 1) if source in wanted]
    for place in _places(plan, SentenceTable(pieces.table)):
        for source, copy in kinds if pieces.wants(place.number) else ():
            if not pieces.build.has(_file_name(pieces.folder, source, copy, place.number)):
                yield place, source, copy
            elif source in tasks:
                tasks[source].advance(place.rows)


def _missing(
    plan: AugmentationPlan, pieces: Pieces, wanted: Mapping[str, AugmenterSpec], tasks: Mapping[str, Task]
) -> Iterator[Piece]:
    """The pieces that are not made yet; no other file of the table is read."""
    table = SentenceTable(pieces.table)
    for file, unmade in groupby(_unmade(plan, pieces, wanted, tasks), lambda one: one[0].file):
        texts = table.texts(file)
        for place, source, copy in unmade:
            part = texts[place.start : place.start + place.rows]
            yield Piece(place.number, source, copy, place.first_row, part)


def _augment_here(
    spec: AugmenterSpec, plan: AugmentationPlan, pieces: Pieces, tasks: Mapping[str, Task], reporter: Reporter
) -> str:
    augmenter = None
    for piece in _missing(plan, pieces, {spec.source: spec}, tasks):
        if augmenter is None:
            augmenter = spec.load()
            if augmenter.note:
                reporter.note(f"{spec.source}: {augmenter.note}")
        _keep(piece, augmenter.augment(piece.texts, piece.first_row, piece.copy), pieces, tasks)
    return augmenter.note if augmenter else ""


def _keep(piece: Piece, new: list[str], pieces: Pieces, tasks: Mapping[str, Task]) -> None:
    with pieces.build.write(file_of(piece, pieces.folder)) as path:
        pq.write_table(pa.table({"text": pa.array(new, pa.string())}), path, compression="zstd")
    tasks[piece.augmentation].advance(len(new))


def file_of(piece: Piece, folder: str = PIECES) -> str:
    """The name of a piece's file."""
    return _file_name(folder, piece.augmentation, piece.copy, piece.number)


def _file_name(folder: str, source: str, copy: int, number: int) -> str:
    return f"{folder}/{source}-{copy}-{number:06d}.parquet"
