"""Triplets held out: none of them is trained on, in either direction."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sentcompress.training.token_cache import TokenCache
from sentcompress.training.triplets import TripletData


def test_pairs_in_both_directions_do_not_leak(tmp_path: Path) -> None:
    """Duplicate questions come as (a, b) and (b, a): the second tells the answer to the first."""
    first = np.arange(0, 400, 2)
    negatives = np.full(len(first), 400)
    there = np.stack([first, first + 1, negatives], axis=1)
    back = np.stack([first + 1, first, negatives], axis=1)
    data = TripletData(np.concatenate([there, back]), TokenCache(tmp_path, 0), pad=0)
    rows, held = data.split(seed=0)
    assert len(held) == 8
    trained = {tuple(sorted(pair)) for pair in data.triplets[rows, :2].tolist()}
    assert not trained & {tuple(sorted(pair)) for pair in data.triplets[held, :2].tolist()}
    assert len(rows) >= 400 - 2 * len(held)
