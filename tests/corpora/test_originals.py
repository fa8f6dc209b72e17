"""Triplets of labelled pairs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sentcompress.corpora.originals import Limits, TripletCollector, write_originals
from sentcompress.corpora.records import Record, Relation
from sentcompress.corpora.text_files import BadRecords
from sentcompress.progress import SILENT


def collect(*records: tuple[tuple[int, ...], Relation]) -> list[list[int]]:
    collector = TripletCollector()
    for rows, relation in records:
        collector.add(rows, relation)
    return collector.finish().tolist()  # type: ignore[no-any-return]


ENT, NEU, CON = Relation.ENTAILMENT, Relation.NEUTRAL, Relation.CONTRADICTION


def test_the_first_entailment_and_contradiction_of_a_premise() -> None:
    found = collect(
        ((5, 6), CON), ((0, 1), NEU), ((0, 2), ENT), ((5, 7), ENT), ((0, 3), ENT), ((0, 4), CON), ((5, 8), CON)
    )  # fmt: skip
    assert found == [[0, 2, 4], [5, 7, 6]]


def test_premises_without_an_entailment_or_a_contradiction_give_no_triplet() -> None:
    assert collect(((0, 1), ENT), ((2, 3), CON), ((4, 5), NEU)) == []


def test_repeated_and_missing_rows_give_no_triplet() -> None:
    assert collect(((0, 0), ENT), ((0, 1), CON), ((2, -1), ENT), ((2, 3), CON), ((4, 5), ENT), ((4, 5), CON)) == []


def test_complete_triplets_are_kept_once_and_come_last() -> None:
    triplet = Relation.TRIPLET
    found = collect(((9, 8, 7), triplet), ((9, 8, 6), triplet), ((9, 8, 7), triplet), ((0, 1), ENT), ((0, 2), CON))
    assert found == [[0, 1, 2], [9, 8, 7], [9, 8, 6]]


def test_either_of_two_paraphrases_is_an_anchor() -> None:
    same, other = Relation.PARAPHRASE, Relation.NOT_PARAPHRASE
    assert collect(((0, 1), same), ((2, 1), other), ((0, 3), other)) == [[0, 1, 3], [1, 0, 2]]
    assert collect(((0, 1), same), ((2, 3), other)) == []
    # QNLI's questions are anchors, its sentences are not.
    assert collect(((0, 1), ENT), ((0, 2), CON), ((3, 1), CON)) == [[0, 1, 2]]


@dataclass
class Pairs:
    """An input of labelled pairs; `read` counts those that were read."""

    origin: str
    pairs: list[tuple[str, str, Relation]]
    read: list[Record] = field(default_factory=list)

    def records(self, bad: BadRecords) -> Iterator[Record]:
        for first, second, relation in self.pairs:
            self.read.append(Record((first, second), relation))
            yield self.read[-1]


def test_an_input_after_the_limit_is_not_read(tmp_path: Path) -> None:
    """Its labels would otherwise make triplets of sentences that are in the table, if they are among its first."""

    @contextmanager
    def write(name: str) -> Iterator[Path]:
        yield tmp_path / name

    first = Pairs("a", [("a", "b", ENT), ("c", "d", NEU)])
    second = Pairs("b", [("a", "c", CON)])
    for limit, triplets in ((4, 0), (5, 1)):
        for given in (first, second):
            given.read.clear()
        found = write_originals([first, second], write, Limits(sentences=limit), BadRecords(), SILENT)
        assert (found.originals, found.triplets) == (4, triplets)
        assert len(second.read) == triplets
