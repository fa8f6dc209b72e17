"""The Hilbert-Schmidt independence criterion (HSIC), a kernel measure of dependence between two vectors."""

from __future__ import annotations

import torch
from torch import Tensor

KERNELS = ("rbf", "imq", "linear")


def kernel(vectors: Tensor, name: str, gamma: float) -> Tensor:
    """The kernel values of all pairs of rows, in float32 or better even under autocast.

    rbf: exp(-gamma |a - b|^2) (IBKD's formula lacks the minus and the square; its code has them);
    imq: 1 / sqrt(gamma + |a - b|^2); linear: a b. Half precision is too coarse for differences of squares.

    Args:
        vectors: [B, D].
        name: one of KERNELS.
        gamma: above 0; ignored by `linear`.

    Returns:
        [B, B].
    """
    with torch.autocast(device_type=vectors.device.type, enabled=False):
        vectors = vectors if vectors.dtype == torch.float64 else vectors.float()
        if name == "linear":
            return vectors @ vectors.T
        distances = squared_distances(vectors)
        return (-gamma * distances).exp() if name == "rbf" else (gamma + distances).rsqrt()


def squared_distances(vectors: Tensor) -> Tensor:
    """|a - b|^2 of all pairs of rows: [B, D] -> [B, B], at least 0."""
    # Centring leaves the distances as they are and reduces the rounding error of the difference below.
    centred = vectors - vectors.mean(dim=0)
    squares = centred.square().sum(dim=1)
    return (squares.unsqueeze(1) + squares.unsqueeze(0) - 2 * centred @ centred.T).clamp(min=0)


def hsic(first: Tensor, second: Tensor, divisor: str = "n-1") -> Tensor:
    """tr(K H L H) / (n - 1)^2, or / n^2 with divisor `n`, where H is the centring matrix; 0 for one row.

    Args:
        first, second: [n, n] kernel values K and L of the same n sentences.

    Returns:
        A scalar, at least 0.
    """
    count = len(first)
    below = max(count - 1, 1) if divisor == "n-1" else count
    with torch.autocast(device_type=first.device.type, enabled=False):
        return (centre(first) * centre(second)).sum() / below**2


def centre(values: Tensor) -> Tensor:
    """H K H: subtract the means, so that every row and every column has mean 0: [n, n] -> [n, n]."""
    rows = values - values.mean(dim=1, keepdim=True)
    return rows - rows.mean(dim=0, keepdim=True)


def mean_off_diagonal(values: Tensor) -> Tensor | None:
    """The mean kernel value of two different sentences; near 0 the kernel gives no gradient.

    Args:
        values: [n, n].

    Returns:
        A scalar; None for a single sentence.
    """
    count = len(values)
    return (values.sum() - values.diagonal().sum()) / (count * (count - 1)) if count > 1 else None
