"""The Quora protocol on pairs small enough to do by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.evaluation.retrieval import collection_of_pairs, mean_reciprocal_rank

PAIRS = [
    ("a", "x", True),
    ("a", "y", False),
    ("a", "z", True),
    ("b", "x", False),
    ("c", "x", True),
    ("c", "x", False),  # the same pair judged twice: marked once is marked
    ("d", "a", False),  # a text may be a query and a document
]


def test_corpus_queries_and_relevance_by_hand() -> None:
    collection = collection_of_pairs(PAIRS)
    assert collection.documents == ("x", "y", "z", "a")
    assert collection.queries == ("a", "b", "c", "d")
    assert collection.relevant == (frozenset({0, 2}), frozenset(), frozenset({0}), frozenset())
    assert collection.judged == 2


def test_queries_with_nothing_to_find_are_left_out_of_the_mean() -> None:
    relevant = collection_of_pairs(PAIRS).relevant
    ranked = np.array([[3, 2, 1], [0, 1, 2], [1, 3, 0], [0, 1, 2]])
    assert mean_reciprocal_rank(ranked, relevant) == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_only_the_first_ten_ranks_count() -> None:
    ranked = np.array([[*range(1, 11), 0]])
    assert mean_reciprocal_rank(ranked, [frozenset({0})]) == 0
    assert mean_reciprocal_rank(ranked, [frozenset({10})]) == pytest.approx(0.1)
