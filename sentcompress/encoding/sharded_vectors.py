"""Teacher vectors in shards: the windows of a table are divided, and their vectors joined again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding.batches import windows
from sentcompress.encoding.npy_files import LAYERS_PATTERN, VECTORS_PATTERN, writing_vectors
from sentcompress.progress import Reporter, Task
from sentcompress.store import SCAFFOLD, Artifact, Build
from sentcompress.store.shard import Shard

# Rows copied at a time.
BLOCK = 8192
# Where the parts of a file are until they are joined.
PARTS = f"{SCAFFOLD}/parts/"


@dataclass(frozen=True)
class Span:
    """Consecutive rows of one file of a sentence table.

    Attributes:
        file: the number of the file.
        start, stop: the rows, counted within the file.
        whole: whether these are all rows of the file.
        folder: where its file of vectors is, with a slash at the end.
    """

    file: int
    start: int
    stop: int
    whole: bool = False
    folder: str = ""

    @property
    def rows(self) -> int:
        return self.stop - self.start

    def name(self, pattern: str) -> str:
        """The name of the file of vectors: `vectors-00000.npy`, or `vectors-00000-000020000.npy` for a part."""
        name = pattern.format(self.file)
        return self.folder + (name if self.whole else name.replace(".npy", f"-{self.start:09d}.npy"))


def spans_of(table: SentenceTable) -> list[Span]:
    """One span for each file of a table."""
    return [Span(file, 0, rows, whole=True) for file, rows in enumerate(table.file_rows)]


def measured_windows(table: SentenceTable, longest: int, task: Task) -> list[list[list[int]]]:
    """Rows and characters of each window in which the engine encodes a table: [rows, characters], by file.

    The last digits of a vector depend on its window. Shards therefore consist of whole windows.

    Args:
        longest: characters of a text that count; the model does not read more.
    """
    found = []
    for file, rows in enumerate(table.file_rows):
        found.append(_measured(table.texts(file), longest))
        task.advance(rows)
    return found


def work_of(table: SentenceTable, spans: Sequence[Span], longest: int) -> list[tuple[int, float]]:
    """Rows and characters of each window of the spans, for the time that is left: see `ProgressTask.set_work`.

    Args:
        longest: see `measured_windows`.
    """
    texts = (table.texts(span.file)[span.start : span.stop] for span in spans)
    return [(rows, characters) for inside in texts for rows, characters in _measured(inside, longest)]


def _measured(texts: Sequence[str], longest: int) -> list[list[int]]:
    return [[len(window), sum(min(len(text), longest) for text in window)] for window in windows([texts])]


def spans_of_shard(measured: Sequence[Sequence[Sequence[int]]], shard: Shard) -> list[Span]:
    """The rows of one shard, by file. Shards have nearly the same number of characters, to end at the same time.

    Args:
        measured: from `measured_windows`.
    """
    flat = [(file, window, size) for file, inside in enumerate(measured) for window, (_, size) in enumerate(inside)]
    ends = [np.cumsum([0, *(rows for rows, _ in inside)]).tolist() for inside in measured]
    spans: list[Span] = []
    for file, window, _ in (flat[piece] for piece in shard.of_sizes([size for _, _, size in flat])):
        start, stop = ends[file][window], ends[file][window + 1]
        if spans and spans[-1].file == file:
            start = spans.pop().start
        spans.append(Span(file, start, stop))
    return spans


def divided(table: SentenceTable, files: Sequence[int], share: Shard) -> tuple[list[Span], list[int]]:
    """The part of some files of a table that one rank encodes, and the files that are joined afterwards.

    Every rank gets the same number of whole files. The windows of the files that remain are divided, each into a file
    of its own, so that a run with another number of ranks can continue with them.
    """
    even = len(files) // share.count * share.count
    spans = [Span(file, 0, table.file_rows[file], whole=True) for file in (files[place] for place in share.of(even))]
    cut = list(files[even:])
    pieces = [piece for file in cut for piece in parts_of(table, Span(file, 0, table.file_rows[file]))]
    return spans + [pieces[place] for place in share.of(len(pieces))], cut


def parts_of(table: SentenceTable, span: Span) -> list[Span]:
    """The windows in which the engine encodes a span, each with a file of its own until the span is complete."""
    texts = table.texts(span.file)[span.start : span.stop]
    ends = np.cumsum([span.start, *(len(window) for window in windows([texts]))]).tolist()
    return [Span(span.file, start, stop, folder=PARTS) for start, stop in pairwise(ends)]


def join_parts(span: Span, parts: Sequence[Span], build: Build, *, layers: bool) -> None:
    """Write the vectors of a span whose parts are there, and remove the parts."""
    patterns = [*([LAYERS_PATTERN] if layers else []), VECTORS_PATTERN]
    for pattern in patterns:
        if not build.has(span.name(pattern)):
            _join(iter([build.path / part.name(pattern) for part in parts]), span.rows, build, span.name(pattern))
    for part in parts:
        for pattern in patterns:
            build.remove(part.name(pattern))


def join_file(file: int, rows: int, build: Build, *, layers: bool) -> None:
    """Write the vectors of a file that was cut into windows."""
    for pattern in (*([LAYERS_PATTERN] if layers else []), VECTORS_PATTERN):
        name = pattern.format(file)
        if not build.has(name):
            _join(iter(sorted((build.path / PARTS).glob(name.replace(".npy", "-*.npy")))), rows, build, name)


def join_vectors(plan: Artifact, shards: Sequence[Artifact], build: Build, reporter: Reporter) -> dict[str, Any]:
    """Write the vectors of all shards as one run would have written them; returns the facts.

    Args:
        plan: its facts hold the `windows`, see `measured_windows`, and the facts that are `described` for all.
        shards: in order.
    """
    facts = {**shards[0].facts, **plan.facts["described"]}
    patterns = [LAYERS_PATTERN] if facts["layers"] else []
    parts = _parts_by_file(shards)
    with reporter.track("merging", total=facts["rows"]) as task:
        for file, inside in enumerate(plan.facts["windows"]):
            rows = sum(count for count, _ in inside)
            for pattern in (*patterns, VECTORS_PATTERN):
                name = pattern.format(file)
                if not build.has(name):
                    _join(iter(parts[name]), rows, build, name)
            task.advance(rows)
    return {
        **{name: value for name, value in facts.items() if name not in ("shard", "of")},
        "device": ", ".join(sorted({str(shard.facts["device"]) for shard in shards})),
        "sentences_per_second": _rate(shards),
    }


def _rate(shards: Sequence[Artifact]) -> float | None:
    """Sentences per second of one process, on average."""
    timed = [(shard.facts["rows"], shard.facts["sentences_per_second"]) for shard in shards]
    timed = [(rows, rate) for rows, rate in timed if rate]
    return round(sum(rows for rows, _ in timed) / sum(rows / rate for rows, rate in timed), 1) if timed else None


def _parts_by_file(shards: Sequence[Artifact]) -> dict[str, list[Path]]:
    """The parts of each file of vectors, in the order of their rows. Every folder is listed once."""
    found: dict[str, list[Path]] = {}
    for shard in shards:
        for path in sorted(shard.path.glob("*-*-*.npy")):
            found.setdefault(f"{path.stem.rpartition('-')[0]}.npy", []).append(path)
    return found


def _join(paths: Iterator[Path], rows: int, build: Build, name: str) -> None:
    first = next(paths)
    header = np.load(first, mmap_mode="r")
    with (
        build.write(name) as path,
        writing_vectors(path, rows, header.shape[1], str(header.dtype)) as append,
    ):
        for part in (first, *paths):
            for start in range(0, len(np.load(part, mmap_mode="r")), BLOCK):
                # Mapped again for every block: the pages of an open mapping count as memory of this process.
                append(np.load(part, mmap_mode="r")[start : start + BLOCK])
