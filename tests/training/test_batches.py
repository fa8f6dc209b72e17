"""Which rows make which batch."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sentcompress.training.batches import BatchPlan


def plan(count: int = 1000, batch_size: int = 16, budget: int = 10_000, seed: int = 0, longest: int = 60) -> BatchPlan:
    lengths = np.random.default_rng(5).integers(3, longest, size=count).astype(np.int32)
    return BatchPlan(np.arange(count) + 7, lengths, batch_size, budget, seed)


@pytest.mark.parametrize("budget", [10_000, 200])
@pytest.mark.parametrize("count", [1, 15, 16, 17, 1000])
def test_an_epoch_holds_every_row_once(count: int, budget: int) -> None:
    batches = plan(count, budget=budget).epoch(0)
    assert sorted(np.concatenate(batches)) == list(range(7, count + 7))
    assert len(batches) == plan(count, budget=budget).steps(0)


def test_an_epoch_is_a_function_of_seed_and_number() -> None:
    first, again = plan().epoch(3), plan().epoch(3)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    for other in (plan().epoch(4), plan(seed=1).epoch(3)):
        assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_there_is_next_to_no_padding() -> None:
    made = plan(10_000)
    padded = real = 0
    for rows in made.epoch(0):
        lengths = made.lengths[rows - 7]
        padded += int(lengths.max()) * len(lengths)
        real += int(lengths.sum())
    assert padded < 1.05 * real


def test_batches_of_all_lengths_are_mixed() -> None:
    made = plan(10_000)
    means = np.array([made.lengths[rows - 7].mean() for rows in made.epoch(0)])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.15


def test_no_batch_is_larger_than_asked() -> None:
    made = plan(budget=200)
    assert made.steps(0) > 1000 / 16
    for rows in made.epoch(0):
        assert len(rows) <= 16
        assert len(rows) == 1 or len(rows) * int(made.lengths[rows - 7].max()) <= 200


def test_a_sentence_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    made = BatchPlan(np.arange(4), np.array([3, 500, 3, 3], dtype=np.int32), 4, 100, 0)
    assert [1] in [list(rows) for rows in made.epoch(0)]


@pytest.mark.parametrize("count", [1, 16, 1000])
@pytest.mark.parametrize("budget", [10_000, 200])
def test_random_batches_are_a_shuffled_list_cut_in_pieces(count: int, budget: int) -> None:
    made = replace(plan(count, budget=budget), by_length=False)
    batches = made.epoch(2)
    order = np.random.default_rng((0, 2)).permutation(count) + 7
    np.testing.assert_array_equal(np.concatenate(batches), order)
    assert len(batches) == made.steps(2)
    if budget == 10_000:
        assert {len(rows) for rows in batches[:-1]} <= {16}
    else:
        # No batch is larger than asked, and none could hold the next row too.
        for rows, following in pairwise(batches):
            lengths = made.lengths[np.concatenate([rows, following[:1]]) - 7]
            assert len(rows) == 1 or len(rows) * int(lengths[:-1].max()) <= 200
            assert len(rows) == 16 or len(lengths) * int(lengths.max()) > 200


def test_random_batches_hold_texts_of_every_length() -> None:
    made = replace(plan(10_000), by_length=False)
    spreads = [float(made.lengths[rows - 7].std()) for rows in made.epoch(0)]
    assert np.mean(spreads) == pytest.approx(made.lengths.std(), rel=0.1)
    first, again = made.epoch(3), made.epoch(3)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_sample_is_of_short_and_long_rows() -> None:
    lengths = np.array([9, 2, 40, 7, 3, 100, 5], dtype=np.int32)
    plan = BatchPlan(np.arange(10, 17), lengths, batch_size=2, token_budget=100, seed=0)
    assert plan.sample(3).tolist() == [11, 13, 15]  # of lengths 2, 7 and 100
    assert sorted(plan.sample(99).tolist()) == list(range(10, 17))
