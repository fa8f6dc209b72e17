"""The choice of hard negatives among candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sentcompress.mining.miner import Chosen, Rules, choose, draw

ROWS = np.array([7, 3, 9, 1, 4, 8, -1], dtype=np.int64)
SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, -1e30], dtype=np.float32)


def chosen(answers: list[int], positive_score: float = 0.75, **rules: Any) -> Chosen:
    settings = {"count": 2, "max_score": None, "strategy": "top", **rules}
    return choose(
        ROWS, SCORES, np.array(answers), positive_score, Rules(**settings), np.random.default_rng(rules.get("seed", 0))
    )


def test_the_best_candidates_that_are_not_answers_are_chosen() -> None:
    found = chosen([3, -1])
    assert found.rows.tolist() == [7, 9]
    assert found.scores.tolist() == pytest.approx([0.9, 0.7])
    assert (found.considered, found.dropped, found.suspected.tolist()) == (5, 0, [])


def test_skip_does_not_count_answers() -> None:
    found = chosen([7], skip=2, depth=3)
    assert found.rows.tolist() == [1, 4]
    assert found.suspected.tolist() == [3, 9]
    assert found.considered == 3


def test_candidates_with_a_score_near_the_positive_are_dropped() -> None:
    found = chosen([3], positive_score=0.8, max_score=0.75)  # limit 0.6
    assert found.rows.tolist() == [1, 4]
    assert (found.considered, found.dropped) == (5, 2)
    assert sorted(found.suspected.tolist()) == [7, 9]


def test_fewer_negatives_than_requested() -> None:
    assert chosen([], positive_score=0.5, max_score=0.9).rows.tolist() == [8]
    assert chosen(ROWS.tolist()).rows.tolist() == []


def test_the_limit_is_below_a_negative_score_too() -> None:
    assert Rules(max_score=0.9).limit(0.5) == pytest.approx(0.45)
    assert Rules(max_score=0.9).limit(-0.5) == pytest.approx(-0.55)
    assert Rules(max_score=None).limit(0.1) == float("inf")


def test_random_negatives_come_from_the_depth_and_follow_the_generator() -> None:
    drawn: list[npt.NDArray[np.int64]] = []
    for seed in range(200):
        rules = Rules(count=2, depth=4, max_score=None, strategy="random")
        found = choose(ROWS, SCORES, np.array([7]), 0.9, rules, np.random.default_rng(seed))
        again = choose(ROWS, SCORES, np.array([7]), 0.9, rules, np.random.default_rng(seed))
        assert found.rows.tolist() == again.rows.tolist()
        assert (np.diff(found.scores) <= 0).all()
        drawn.append(found.rows)
    counts = np.unique(np.concatenate(drawn), return_counts=True)
    assert counts[0].tolist() == [1, 3, 4, 9]  # neither the answer 7 nor 8, which is too deep
    assert counts[1].min() > 70


@pytest.mark.parametrize("corpus", [12, 60])
def test_random_rows_are_distinct_and_allowed(corpus: int) -> None:
    seen: set[int] = set()
    for seed in range(300):
        rows = draw(5, corpus, np.array([0, 3, 3, 7]), np.random.default_rng(seed))
        assert len(set(rows.tolist())) == 5
        assert not {0, 3, 7} & set(rows.tolist())
        seen |= set(rows.tolist())
    assert max(seen) == corpus - 1
    assert min(seen) == 1


def test_fewer_rows_than_requested_in_a_small_corpus() -> None:
    assert sorted(draw(9, 4, np.array([2]), np.random.default_rng(0)).tolist()) == [0, 1, 3]
