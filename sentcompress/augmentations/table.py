"""Adds augmented rows to the originals of a sentence table, piece by piece, so that an interrupted run can resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from sentcompress.augmentations.base import AugmenterSpec
from sentcompress.augmentations.workers import Piece, augment_pieces
from sentcompress.corpora.originals import Limits, clean
from sentcompress.corpora.sentence_table import (
    SentenceIndex,
    SentenceTable,
    SentenceWriter,
    read_columns,
    sentence_hashes,
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
    """The originals of a table, and the augmentations with their numbers of copies, in table order."""

    originals: int
    shards: int
    augmentations: tuple[tuple[AugmenterSpec, int], ...]

    @property
    def piece_rows(self) -> int:
        """Sentences per piece. Independent of the number of workers, so that a run with another number can resume."""
        return max(_SMALLEST_PIECE, min(_LARGEST_PIECE, -(-self.originals // _PIECES)))


@dataclass
class Augmented:
    """The result: rows of the whole table, new rows by source, dropped sentences by reason."""

    rows: int = 0
    by_source: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)


def make_pieces(plan: AugmentationPlan, build: Build, workers: int, reporter: Reporter) -> dict[str, str]:
    """Augment every original and store each piece in a file; pieces of an earlier run are kept.

    Returns:
        Source -> the note of its augmenter, if it has one and did something here.

    Raises:
        SentcompressError: from an augmenter.
    """
    notes: dict[str, str] = {}
    with ExitStack() as stack:
        tasks = {
            spec.source: stack.enter_context(reporter.track(spec.source, total=plan.originals * copies))
            for spec, copies in plan.augmentations
        }
        shared = {spec.source: spec for spec, _ in plan.augmentations if spec.in_workers}
        if shared:
            count = sum(1 for _ in _missing(plan, build, shared, {}))
            pieces = _missing(plan, build, shared, tasks)
            # Closed at once if writing fails, so that the workers end first.
            with closing(augment_pieces(shared, pieces, min(workers, count))) as results:
                for piece, new in results:
                    _keep(piece, new, build, tasks)
        for spec, _ in plan.augmentations:
            if not spec.in_workers and (note := _augment_here(spec, plan, build, tasks, reporter)):
                notes[spec.source] = note
    return notes


def append_pieces(plan: AugmentationPlan, build: Build, limits: Limits, reporter: Reporter) -> Augmented:
    """Append the augmented sentences to the table, without duplicates."""
    total = plan.originals * (1 + sum(copies for _, copies in plan.augmentations))
    table, index, result = SentenceTable(build.path), SentenceIndex(), Augmented()
    writer = SentenceWriter(build.write, first_row=plan.originals, first_shard=plan.shards)
    with reporter.track("dropping duplicates", total=total) as task:
        for shard in range(plan.shards):
            texts = table.texts(shard)
            index.assign(sentence_hashes(texts))
            task.advance(len(texts))
        for spec, copies in plan.augmentations:
            result.by_source[spec.source] = 0
            for copy in range(1, copies + 1):
                origins, domains = (
                    _pieces(plan, table, spec.source, copy, column) for column in (table.origins, table.domain_names)
                )
                for piece, told in zip(origins, domains, strict=True):
                    _append(piece, told.texts, build, limits, index, writer, result)
                    task.advance(len(piece.texts))
        writer.finish()
    result.rows = writer.rows
    return result


def _append(
    piece: Piece,
    domains: list[str],
    build: Build,
    limits: Limits,
    index: SentenceIndex,
    writer: SentenceWriter,
    result: Augmented,
) -> None:
    origins = piece.texts
    texts = [clean(text) for text in read_columns(build.path / _file(piece)).column(0).to_pylist()]
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


def _pieces(
    plan: AugmentationPlan, table: SentenceTable, augmentation: str, copy: int, column: Callable[[int], list[str]]
) -> Iterator[Piece]:
    """The pieces of all originals, each with its slice of a column of the table."""
    number = first_row = 0
    for shard in range(plan.shards):
        values = column(shard)
        for start in range(0, len(values), plan.piece_rows):
            part = values[start : start + plan.piece_rows]
            yield Piece(number, augmentation, copy, first_row + start, part)
            number += 1
        first_row += len(values)


def _missing(
    plan: AugmentationPlan, build: Build, wanted: Mapping[str, AugmenterSpec], tasks: Mapping[str, Task]
) -> Iterator[Piece]:
    """The pieces that are not made yet; existing ones count as progress."""
    table = SentenceTable(build.path)
    kinds = [(spec.source, copy) for spec, copies in plan.augmentations for copy in range(1, copies + 1)]
    for piece in _pieces(plan, table, "", 0, table.texts):
        for source, copy in kinds:
            if source not in wanted:
                continue
            mine = Piece(piece.number, source, copy, piece.first_row, piece.texts)
            if not build.has(_file(mine)):
                yield mine
            elif source in tasks:
                tasks[source].advance(len(mine.texts))


def _augment_here(
    spec: AugmenterSpec, plan: AugmentationPlan, build: Build, tasks: Mapping[str, Task], reporter: Reporter
) -> str:
    augmenter = None
    for piece in _missing(plan, build, {spec.source: spec}, tasks):
        if augmenter is None:
            augmenter = spec.load()
            if augmenter.note:
                reporter.note(f"{spec.source}: {augmenter.note}")
        _keep(piece, augmenter.augment(piece.texts, piece.first_row, piece.copy), build, tasks)
    return augmenter.note if augmenter else ""


def _keep(piece: Piece, new: list[str], build: Build, tasks: Mapping[str, Task]) -> None:
    with build.write(_file(piece)) as path:
        pq.write_table(pa.table({"text": pa.array(new, pa.string())}), path, compression="zstd")
    tasks[piece.augmentation].advance(len(new))


def _file(piece: Piece) -> str:
    return f"{PIECES}/{piece.augmentation}-{piece.copy}-{piece.number:06d}.parquet"
