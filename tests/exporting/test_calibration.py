"""The range that an activation is stored with."""

from __future__ import annotations

import numpy as np
import pytest

from sentcompress.exporting.calibration import best_range


@pytest.mark.parametrize("outlier", [-20.0, 20.0])
def test_one_outlier_does_not_widen_the_steps_of_all_others(outlier: float) -> None:
    usual = np.random.default_rng(0).normal(size=500_000)
    low, high = best_range(np.append(usual, outlier).astype(np.float32))
    assert -20 < low < -3
    assert 3 < high < 20


def test_zero_is_in_every_range() -> None:
    assert best_range(np.ones(5, dtype=np.float32))[0] == 0
    assert best_range(-np.ones(5, dtype=np.float32))[1] == 0
    assert best_range(np.zeros(5, dtype=np.float32)) == (0, 0)
