"""Gradients by central differences, for equations written in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def differences(function: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a function of one array, in float64, each place moved by itself."""
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        values = []
        for sign in (1, -1):
            moved = at.copy()
            moved[place] += sign * step
            values.append(function(moved))
        gradient[place] = (values[0] - values[1]) / (2 * step)
    return gradient


def rows(vectors: np.ndarray) -> np.ndarray:
    """Vectors along the last axis, scaled to length one."""
    return vectors / np.sqrt((vectors**2).sum(-1, keepdims=True))
