"""Triplets held out: none of them is trained on, in either direction, and the score of the rest is its definition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sentcompress.commands.training import BATCHES, TrainingOptions
from sentcompress.errors import InputError
from sentcompress.methods.simcse import SimCSE
from sentcompress.models.token_batches import TokenRows
from sentcompress.training.batches import WHOLE
from sentcompress.training.dev import LOWEST, score_of
from sentcompress.training.settings import Settings
from sentcompress.training.triplets import KeptSentences, TripletData, TripletDev


def test_pairs_in_both_directions_do_not_leak() -> None:
    """Duplicate questions come as (a, b) and (b, a): the second tells the answer to the first."""
    first = np.arange(0, 400, 2)
    negatives = np.full(len(first), 400)
    there = np.stack([first, first + 1, negatives], axis=1)
    back = np.stack([first + 1, first, negatives], axis=1)
    data = TripletData(np.concatenate([there, back]), TokenRows.of([]), pad=0)
    rows, held = data.split(seed=0)
    assert len(held) == 50
    trained = {tuple(sorted(pair)) for pair in data.triplets[rows, :2].tolist()}
    assert not trained & {tuple(sorted(pair)) for pair in data.triplets[held, :2].tolist()}
    assert len(rows) >= 400 - 2 * len(held)


@pytest.mark.parametrize(("triplets", "held"), [(6, 2), (30, 6), (100, 20), (300, 50), (5_000, 100), (200_000, 1_000)])
def test_of_few_triplets_more_are_held_out(triplets: int, held: int) -> None:
    data = TripletData(np.arange(3 * triplets).reshape(-1, 3), TokenRows.of([]), pad=0)
    rows, out = data.split(seed=0)
    assert (len(rows), len(out)) == (triplets - held, held)


@pytest.mark.parametrize(
    ("triplets", "anchors", "told"),
    [
        (1, 1, "1 triplet is too few to hold some out"),
        (2, 2, "2 triplets are too few to hold some out"),
        (3_000, 2, "with 60 of 3,000 triplets held out, none is left: all have a held-out anchor"),
    ],
)
def test_why_no_triplet_is_left_to_train_on_is_told(triplets: int, anchors: int, told: str) -> None:
    numbers = np.arange(triplets)
    rows = np.stack([numbers % anchors, anchors + numbers, anchors + triplets + numbers], axis=1)
    data = TripletData(rows, TokenRows.of([]), pad=0)
    with pytest.raises(InputError, match=told) as raised:
        data.rows_and_dev(None, seed=0)
    assert raised.value.hint == "add triplets with other anchors, or select checkpoints by graded pairs with `dev`"


def test_the_score_is_the_share_of_anchors_whose_positive_is_the_nearest_text() -> None:
    generator = np.random.default_rng(0)
    texts = 24
    vectors = generator.normal(size=(texts, 3))
    places = np.array([generator.permutation(texts)[:4] for _ in range(40)])
    places[7, 1] = places[5, 0]  # an anchor that is another's positive is no rival of itself
    dev = TripletDev([[number] for number in range(texts)], places, pad=0)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    others = set(places[:, 1:].ravel())
    answers = {anchor: {p for a, p in places[:, :2].tolist() if a == anchor} for anchor in places[:, 0].tolist()}
    right = sum(
        all(unit[a] @ unit[p] > unit[a] @ unit[other] for other in others - {a} - answers[a])
        for a, p in places[:, :2].tolist()
    )
    assert 0 < right < len(places)
    table = torch.tensor(vectors)
    assert dev.score(lambda ids, mask: table[ids[:, 0]], torch.device("cpu")) == pytest.approx(100 * right / 40)
    flipped = places.copy()
    flipped[:2, 1], flipped[:2, 2] = places[:2, 2], places[:2, 1]
    of_flipped = TripletDev(dev.tokens, flipped, pad=0).score(lambda ids, mask: table[ids[:, 0]], torch.device("cpu"))
    assert abs(of_flipped - 100 * right / 40) <= dev.slack < 100 * right / 40, "rounding may decide so many"
    assert score_of(dev, lambda ids, mask: table[ids[:, 0]] * torch.nan, torch.device("cpu")) == LOWEST


def test_another_positive_of_the_same_anchor_is_no_rival() -> None:
    """Only one of the two can be the nearest text."""
    degrees = torch.tensor([0.0, 20.0, 10.0, 40.0, 180.0, 150.0, 120.0]).deg2rad()
    table = torch.stack([degrees.cos(), degrees.sin()], dim=1)

    def score(*places: tuple[int, int, int]) -> float:
        dev = TripletDev([[number] for number in range(7)], np.array(places), pad=0)
        return dev.score(lambda ids, mask: table[ids[:, 0]], torch.device("cpu"))

    assert score((0, 1, 3), (0, 2, 3), (4, 5, 6)) == 100
    assert score((0, 1, 2), (4, 5, 6)) == 50


@pytest.mark.parametrize("batches", BATCHES)
def test_sentences_beside_triplets_keep_to_the_tokens_of_a_batch(batches: str) -> None:
    """Also among the shortest, whose batch has longer ones, too."""
    tokens = TokenRows.of([[7] * length for length in range(2, 102)])
    settings = Settings.of(SimCSE.recipe, TrainingOptions(batch_size=64, batch_tokens=640, batches=batches))
    kept = KeptSentences(tokens, {}, settings)
    made = [kept.beside(np.array([[number, 1, 2]]), 0, WHOLE) for number in range(100)]
    assert max(batch.tokens for batch in made) <= 640
    assert {int(batch.layout.longest) for batch in made} > {101}
    again = kept.beside(np.array([[5, 1, 2]]), 0, WHOLE)
    assert torch.equal(again.input_ids, made[5].input_ids)
