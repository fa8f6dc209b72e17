"""Triplets of labelled pairs."""

from __future__ import annotations

from sentcompress.corpora.originals import TripletCollector
from sentcompress.corpora.records import Relation


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
