"""The files of a `documents` artifact: training texts, the held-out collection, and its queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TextIO

from sentcompress.corpora.documents_artifact import (
    CORPUS,
    DEV,
    LOG,
    PARTS,
    PASSAGE,
    QUERIES,
    QUERY,
    QUERY_KINDS,
    TEST,
    TITLE,
    TRAIN,
)
from sentcompress.corpora.smallest import Smallest
from sentcompress.json_documents import to_json
from sentcompress.passages.cutting import title_before, with_title
from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.holdout import Choice
from sentcompress.passages.queries import make_queries
from sentcompress.passages.querylog import SplitLog
from sentcompress.passages.scan import Unit
from sentcompress.passages.words import likeness, mark, mark_and_likeness, words_of
from sentcompress.progress import Task

# Held-out queries of each part, dev and test; those of the user's log come on top.
HELD_OUT_QUERIES = 1000
# Candidates for held-out queries from a passage, two of each kind, and how many of them are counted on: short documents
# have one passage each, and some texts give fewer.
_PER_PASSAGE, _EXPECTED = 6, 3
# A shorter title says too little to be a text of its own.
_WORDS_OF_TITLE = 2


@dataclass
class WrittenCounts:
    """The number of texts by kind.

    Attributes:
        held_out_queries: number of held-out queries of each part.
        corpus: the passages of the held-out collection.
    """

    passages: int = 0
    titles: int = 0
    queries: int = 0
    held_out_documents: int = 0
    held_out_queries: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    corpus: int = 0
    repeated_documents: int = 0
    repeated_ids: int = 0
    leaks_dropped: int = 0


@dataclass(frozen=True)
class WritePlan:
    """The inputs of the files.

    Attributes:
        units: reads all units again, in order.
        choice: which of them are held out.
        per_passage: queries for each training passage.
        log: the user's own queries.
    """

    units: Callable[[], Iterable[Unit]]
    choice: Choice
    frequencies: DocumentFrequencies
    per_passage: int
    seed: int
    log: SplitLog | None = None


class QueryPool:
    """Candidates for held-out queries; of each kind, a random sample of HELD_OUT_QUERIES is kept, chosen by hashes."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._kept: dict[str, Smallest[tuple[str, str]]] = {}

    def add(self, kind: str, text: str, document: str) -> None:
        """Add a candidate."""
        kept = self._kept.setdefault(kind, Smallest(HELD_OUT_QUERIES))
        kept.add(mark(text, self._seed), (text, document))

    def chosen(self, besides: Set[int]) -> list[tuple[str, str, str]]:
        """(kind, text, document) of at most HELD_OUT_QUERIES distinct queries; each kind has about the same number.

        Args:
            besides: likenesses of queries that are not to be chosen.
        """
        queues = {kind: self._queue(kind, besides) for kind in QUERY_KINDS}
        found: dict[int, tuple[str, str, str]] = {}
        for place in range(HELD_OUT_QUERIES):
            for kind, queue in queues.items():
                if place < len(queue) and len(found) < HELD_OUT_QUERIES:
                    alike, text, document = queue[place]
                    found.setdefault(alike, (kind, text, document))
        return list(found.values())

    def _queue(self, kind: str, besides: Set[int]) -> list[tuple[int, str, str]]:
        """(likeness, text, document) of the candidates of a kind, in the order of their hashes."""
        ordered = self._kept[kind].values() if kind in self._kept else []
        queue = [(likeness(text, self._seed), text, document) for text, document in ordered]
        return [candidate for candidate in queue if candidate[0] not in besides]


def write_documents(plan: WritePlan, write: Callable[[str], AbstractContextManager[Path]], task: Task) -> WrittenCounts:
    """Write TRAIN, CORPUS and QUERIES; `task` counts every unit twice."""
    choice = plan.choice
    counts = WrittenCounts(
        held_out_documents=int((choice.held & choice.first).sum()),
        repeated_documents=int((~choice.first).sum()),
        repeated_ids=int((choice.repeated_ids & choice.first).sum()),
    )
    with ExitStack() as stack:
        train, corpus, queries = (
            stack.enter_context(stack.enter_context(write(name)).open("w", encoding="utf-8"))
            for name in (TRAIN, CORPUS, QUERIES)
        )
        seen = _write_held_out(plan, corpus, queries, counts, task)
        _write_training(plan, train, corpus, seen, counts, task)
    return counts


def _write_held_out(
    plan: WritePlan, corpus: TextIO, queries: TextIO, counts: WrittenCounts, task: Task
) -> frozenset[int]:
    """Write the held-out passages and queries; returns the likenesses of all held-out passages, titles, queries."""
    pools, seen = {part: QueryPool(plan.seed) for part in PARTS}, set(plan.choice.held_passages)
    expected = _EXPECTED * max(1, counts.held_out_documents // len(PARTS))
    passages_each = max(1, -(-HELD_OUT_QUERIES // expected))
    for part, unit in _units(plan, True, task):
        for number, passage in enumerate(unit.passages):
            _write_passage(corpus, number, unit, passage)
            seen.add(likeness(with_title(unit.title, number, passage), plan.seed))
            counts.corpus += 1
        ranked = sorted(unit.passages, key=lambda text: mark(text, plan.seed))
        for passage in ranked[:passages_each]:
            for kind, text in _made(plan, passage, _PER_PASSAGE, mark(passage, plan.seed)):
                pools[part].add(kind, text, unit.id)
        seen.update(likeness(title, plan.seed) for title in (unit.title, *unit.headings))
        for title in islice(_titles(unit), passages_each):
            pools[part].add(TITLE, title, unit.id)
    _write_queries(plan, pools, queries, seen, counts)
    return frozenset(seen)


def _made(plan: WritePlan, passage: str, number: int, seed: int) -> list[tuple[str, str]]:
    """`make_queries` of a passage, without those of punctuation only, which code and tables give."""
    made = make_queries(passage, number, plan.frequencies, seed)
    return [(kind, text) for kind, text in made if words_of(text)]


def _write_queries(
    plan: WritePlan, pools: Mapping[str, QueryPool], queries: TextIO, seen: set[int], counts: WrittenCounts
) -> None:
    """Write the queries of both parts, each once and as logged if it is, and add their likenesses to `seen`."""
    logged = [(text, part) for text, part in plan.log.queries() if part] if plan.log else []
    written = {likeness(text, plan.seed) for text, _ in logged}
    for part in PARTS:
        own = [(LOG, text, "") for text, of in logged if of == part]
        for kind, text, document in [*pools[part].chosen(written), *own]:
            number = sum(counts.held_out_queries.values())
            _write(queries, _id=f"q{number}", text=text, kind=kind, document=document, part=part)
            written.add(likeness(text, plan.seed))
            counts.held_out_queries[part] += 1
    seen |= written


def _write_training(
    plan: WritePlan, train: TextIO, corpus: TextIO, seen: frozenset[int], counts: WrittenCounts, task: Task
) -> None:
    """Write the training texts; none is like a held-out passage, title or query."""
    unwritten = set(plan.choice.sampled)
    for _, unit in _units(plan, False, task):
        for title in _titles(unit):
            if likeness(title, plan.seed) not in seen:
                _write(train, text=title, kind=TITLE, document=unit.id)
                counts.titles += 1
        for number, passage in enumerate(unit.passages):
            own, alike = mark_and_likeness(passage, plan.seed)
            text = with_title(unit.title, number, passage)
            if alike in unwritten:
                unwritten.discard(alike)
                _write_passage(corpus, number, unit, passage)
                counts.corpus += 1
            if alike in seen or likeness(text, plan.seed) in seen:
                counts.leaks_dropped += 1
                continue
            _write(train, text=text, kind=PASSAGE, document=unit.id)
            counts.passages += 1
            for _, text in _made(plan, passage, plan.per_passage, own):
                counts.queries += _write_query(train, text, unit.id, seen, plan.seed)
    for text, held in plan.log.queries() if plan.log else ():
        counts.queries += 0 if held else _write_query(train, text, "", seen, plan.seed)


def _units(plan: WritePlan, held: bool, task: Task) -> Iterator[tuple[str, Unit]]:
    """The held-out units, or the others, each once, with the part of its queries; a repeated id gets a number."""
    choice = plan.choice
    for number, unit in enumerate(plan.units()):
        if bool(choice.held[number]) != held:
            continue
        task.advance()
        if choice.first[number]:
            own = replace(unit, id=f"{unit.id}~{number}") if choice.repeated_ids[number] else unit
            yield DEV if choice.dev[number] else TEST, own


def _titles(unit: Unit) -> Iterator[str]:
    """The title and the headings that are texts of their own."""
    titles = dict.fromkeys((unit.title, *unit.headings))
    return (title for title in titles if len(words_of(title)) >= _WORDS_OF_TITLE)


def _write_passage(file: TextIO, number: int, unit: Unit, passage: str) -> None:
    _write(file, _id=f"{unit.id}#{number}", title=title_before(unit.title, number, passage), text=passage)


def _write_query(file: TextIO, text: str, document: str, seen: frozenset[int], seed: int) -> int:
    """Write a training query unless it is held out too; returns how many were written."""
    if likeness(text, seed) in seen:
        return 0
    _write(file, text=text, kind=QUERY, document=document)
    return 1


def _write(file: TextIO, **row: str) -> None:
    file.write(to_json(row, indent=None, ascii_only=False) + "\n")
