"""The choice among fitted quantizers."""

from __future__ import annotations

import numpy as np

from sentcompress.quantization.choice import Trial
from sentcompress.quantization.codecs import Float32
from sentcompress.quantization.quantizer import Quantizer


def trial(dimension: int, score: float) -> Trial:
    axes = np.eye(dimension, 8, dtype=np.float32)
    return Trial(Quantizer(axes, Float32(dimension)), np.full(3, score))


def test_of_two_that_score_the_same_the_smaller_one_is_best() -> None:
    small, large = trial(4, 0.82301), trial(8, 0.82302)
    assert max((small, large), key=lambda one: one.order) is small
    assert max((large, small), key=lambda one: one.order) is small
    better = trial(8, 0.8232)
    assert max((small, better), key=lambda one: one.order) is better
