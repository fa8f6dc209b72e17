"""Held-out sentences."""

from __future__ import annotations

import numpy as np

from sentcompress.training.rows import hold_out


def test_held_out_sentences_and_what_was_made_of_them_are_not_trained_on() -> None:
    originals = np.full(1000, -1)
    parents = np.concatenate([originals, np.arange(1000), np.arange(1000)])
    rows, held = hold_out(parents, seed=0)
    assert len(held) == 20
    assert (held < 1000).all()
    assert len(rows) == 3000 - 3 * 20
    assert not set(held) & set(rows)
    assert not set(held) & set(parents[rows])


def test_the_choice_is_a_function_of_the_seed() -> None:
    parents = np.full(5000, -1)
    assert np.array_equal(hold_out(parents, 1)[1], hold_out(parents, 1)[1])
    assert not np.array_equal(hold_out(parents, 1)[1], hold_out(parents, 2)[1])


def test_no_more_than_two_thousand_are_held_out() -> None:
    assert len(hold_out(np.full(400_000, -1), 0)[1]) == 2000


def test_more_are_held_out_where_one_says_nothing() -> None:
    rows, held = hold_out(np.full(60, -1), 0)
    assert (len(rows), len(held)) == (50, 10)
    assert [len(part) for part in hold_out(np.full(8, -1), 0)] == [4, 4]


def test_one_sentence_is_held_out_of_very_few() -> None:
    rows, held = hold_out(np.full(3, -1), 0)
    assert (len(rows), len(held)) == (2, 1)
