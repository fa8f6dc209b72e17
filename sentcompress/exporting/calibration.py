"""Ranges that activations are quantised with, measured on texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sentcompress.exporting.activations import Values, watched

# Values kept of each activation to choose its range by.
SAMPLE = 2**17
# Shares of the largest range that are tried: outliers may be cut off so that the other values are more exact.
SHRINKINGS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
LEVELS = 255
SMALLEST_STEP = 1e-12


def measured_ranges(
    model: Any, names: Sequence[str], tokens: Sequence[Sequence[int]], padding: int
) -> dict[str, tuple[float, float]]:
    """The range of each named activation of a graph; see `best_range`.

    Args:
        tokens: token ids of the texts to measure on.
        padding: the id of the padding token.
    """
    random = np.random.default_rng(0)
    seen: dict[str, list[Values]] = {name: [] for name in names}
    most = max(1, SAMPLE // len(tokens))
    for found in watched(model, names, tokens, padding):
        for name, values in found.items():
            flat = values.ravel()
            drawn = flat if len(flat) <= most else random.choice(flat, most, replace=False)
            seen[name].append(np.concatenate([drawn, [flat.min(), flat.max()]]).astype(np.float32))
    return {name: best_range(np.concatenate(parts)) for name, parts in seen.items()}


def best_range(values: Values) -> tuple[float, float]:
    """The range, which always includes zero, with the smallest squared error of the values in 8 bits."""
    low, high = whole_range(values)
    tried = [(low * down, high * up) for down in SHRINKINGS for up in SHRINKINGS]
    return min(tried, key=lambda ends: float(np.square(values - in_8_bits(values, *ends)).mean()))


def whole_range(values: Values) -> tuple[float, float]:
    """The smallest range that includes all values and zero."""
    return min(float(values.min()), 0.0), max(float(values.max()), 0.0)


def in_8_bits(values: Values, low: float, high: float) -> Values:
    """The values after rounding to 8 bits in this range, which includes zero."""
    step, zero = scale_of(low, high)
    stored: Values = (np.clip(np.round(values / step) + zero, 0, LEVELS) - zero) * step
    return stored


def scale_of(low: float, high: float) -> tuple[float, int]:
    """The scale and the zero point, from 0 to 255, of 8 bits in this range, which includes zero."""
    step = max((high - low) / LEVELS, SMALLEST_STEP)
    return step, round(-low / step)
