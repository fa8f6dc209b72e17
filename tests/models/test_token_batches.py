"""Batches of like length, and their padding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from number_words import tokenize

from sentcompress.models import token_batches
from sentcompress.models.token_batches import TokenRows, by_length, padded

LENGTHS = np.random.default_rng(0).integers(1, 90, size=500)


@pytest.mark.parametrize("longest_first", [False, True])
@pytest.mark.parametrize("padding", [None, 40])
def test_every_text_once_within_both_limits(longest_first: bool, padding: int | None) -> None:
    batches = by_length(LENGTHS, 600, padding=padding, longest_first=longest_first)
    assert sorted(np.concatenate(batches)) == list(range(500))
    for batch in batches:
        size = int(LENGTHS[batch].max()) * len(batch)
        assert size <= 600
        assert padding is None or size - LENGTHS[batch].sum() <= padding
    ordered = LENGTHS[np.concatenate(batches)].tolist()
    assert ordered == sorted(ordered, reverse=longest_first)


def test_no_batch_could_take_the_next_text_as_well() -> None:
    batches = by_length(LENGTHS, 600)
    assert len(batches) > 20
    for batch, following in pairwise(batches):
        assert (len(batch) + 1) * LENGTHS[following[0]] > 600


def test_texts_of_equal_length_keep_their_order() -> None:
    assert [list(batch) for batch in by_length([3, 2, 3, 2, 3], 6)] == [[1, 3], [0, 2], [4]]
    assert [list(batch) for batch in by_length([3, 2, 3, 2, 3], 6, longest_first=True)] == [[0, 2], [4, 1], [3]]


def test_a_text_beyond_the_budget_is_alone() -> None:
    assert [list(batch) for batch in by_length([3, 500, 3], 100)] == [[0, 2], [1]]


def test_nothing_makes_no_batch() -> None:
    assert by_length([], 10) == []


def test_padding_is_on_the_right() -> None:
    ids, mask = padded([[5, 6], np.array([7, 8, 9], dtype=np.int32), [4]], 1)
    assert ids.tolist() == [[5, 6, 1], [7, 8, 9], [4, 1, 1]]
    assert mask.tolist() == [[1, 1, 0], [1, 1, 1], [1, 0, 0]]
    assert ids.dtype == mask.dtype == np.int64


def test_one_text_is_like_a_row_of_many() -> None:
    for row in ([5, 6, 7], np.array([7], dtype=np.int32)):
        for found, wanted in zip(padded([row], 1), TokenRows.of([row]).padded(np.array([0]), 1), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)


@pytest.mark.parametrize("texts", [[], ["1 2"], ["1", "2 3", "", "4", "5 6 7"], [str(number) for number in range(6)]])
def test_texts_are_tokenised_in_pieces(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_batches, "PIECE", 3)
    sizes: list[int] = []
    found = TokenRows.tokenized(texts, lambda piece: (sizes.append(len(piece)), tokenize(piece))[1])
    assert sum(sizes) == len(texts)
    assert all(0 < size <= 3 for size in sizes)
    wanted = TokenRows.of(tokenize(texts))
    for name in ("flat", "lengths", "starts"):
        array = getattr(found, name)
        np.testing.assert_array_equal(array, getattr(wanted, name))
        assert array.dtype == getattr(wanted, name).dtype
