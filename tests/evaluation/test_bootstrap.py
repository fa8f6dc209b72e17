"""Intervals against scipy's bootstrap and the normal approximation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sentcompress.evaluation.bootstrap import mean_interval, paired_mean_interval


@pytest.mark.parametrize("seed", range(3))
def test_mean_interval_agrees_with_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).choice([0, 1 / 3, 1 / 2, 1], size=300)
    ours = mean_interval(values, seed=seed, rounds=4000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.06 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.06 * width)


def test_values_that_are_all_different(monkeypatch: pytest.MonkeyPatch) -> None:
    from sentcompress.evaluation import bootstrap

    monkeypatch.setattr(bootstrap, "BLOCK", 5000)  # a few rounds at a time
    values = np.random.default_rng(0).normal(size=1000)
    low, high = mean_interval(values, seed=1)
    error = values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - 1.96 * error, abs=0.25 * error)
    assert high == pytest.approx(values.mean() + 1.96 * error, abs=0.25 * error)


def test_pairing_takes_out_what_both_share() -> None:
    generator = np.random.default_rng(0)
    hard = generator.uniform(size=500)
    ours, theirs = hard - 0.05 + 0.01 * generator.normal(size=500), hard
    low, high = paired_mean_interval(ours, theirs, seed=0)
    assert low < (ours - theirs).mean() < high < 0
    alone = mean_interval(ours, seed=0)
    assert high - low < 0.1 * (alone.high - alone.low)
    assert paired_mean_interval(hard, hard, seed=0) == (0, 0)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert mean_interval(values, seed=5) == mean_interval(values, seed=5)
    assert mean_interval(values, seed=5) != mean_interval(values, seed=6)


def test_what_has_no_interval() -> None:
    with pytest.raises(ValueError, match="needs values"):
        mean_interval(np.array([]), seed=0)
    with pytest.raises(ValueError, match="finite"):
        mean_interval(np.array([1.0, np.nan]), seed=0)
    with pytest.raises(ValueError, match="same items"):
        paired_mean_interval(np.ones(3), np.ones(2), seed=0)
