"""The choice of hard negatives among candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sentcompress.mining.miner import Chosen, Miner, Rules, choose, draw

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


class Corpus:
    """Six vectors of two dimensions."""

    def __len__(self) -> int:
        return 6

    def open(self) -> npt.NDArray[np.float32]:
        return np.array([[1, 0], [0.9, 0], [0.8, 0], [0.7, 0], [0.2, 0], [0.1, 0]], dtype=np.float32)


@pytest.mark.parametrize(
    ("rules", "fillers"),
    [({"skip": 2, "max_score": None}, {4, 5}), ({"skip": 0, "max_score": 0.5}, {4, 5})],
    ids=["skipped by rank", "dropped by score"],
)
def test_random_texts_that_fill_up_are_none_that_may_be_answers(rules: dict[str, Any], fillers: set[int]) -> None:
    corpus: Any = Corpus()
    hits = (np.array([0, 1, 2, 3]), np.array([1, 0.9, 0.8, 0.7], dtype=np.float32))
    for seed in range(20):
        settings = Rules(count=2, depth=1, strategy="top", **rules)
        miner = Miner(lambda texts: np.zeros((0, 2)), corpus, lambda *_: pytest.fail("no search"), settings)
        query, known = np.array([1, 0], dtype=np.float32), np.array([3, -1])
        rows, scores = miner._of_pair(query, hits, known, 1.0, np.random.default_rng(seed))
        assert {0, 1, 3}.isdisjoint(rows.tolist()[1:])
        assert set(rows.tolist()[-1:]) <= fillers
        assert len(set(rows.tolist())) == len(rows) == len(scores) == 2
