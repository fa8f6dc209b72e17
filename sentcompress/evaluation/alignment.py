"""Alignment and uniformity: how close similar sentences are, and how evenly all vectors are spread.

Wang and Isola, "Understanding Contrastive Representation Learning through Alignment and Uniformity on the
Hypersphere" (2020), as SimCSE measures them on STS-B: alignment over the pairs scored above 4, uniformity over all
sentences. Lower is better for both.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sentcompress.evaluation.similarity import Floats, UndefinedError
from sentcompress.evaluation.stats import Estimate, Resampling, draw_counts

Values = npt.NDArray[np.float64]
POSITIVE_ABOVE = 4.0
# Rows per block of distances; and the most pairs for which uniformity gets an interval, which needs all distances in
# memory (4 bytes x pairs^2).
BLOCK = 512
MOST_RESAMPLED = 10_000


def alignment(first: Floats, second: Floats, gold: Floats, resampling: Resampling) -> Estimate:
    """Mean |x - y|^2 over the pairs whose gold score is above 4.

    Args:
        first, second: [N, D] unit vectors.
        gold: [N] scores from 0 to 5.

    Raises:
        UndefinedError: if no pair is scored above 4.
    """
    positive = gold > POSITIVE_ABOVE
    if not positive.any():
        raise UndefinedError(f"no pair is scored above {POSITIVE_ABOVE:g}")
    apart = np.square(first[positive].astype(np.float64) - second[positive].astype(np.float64)).sum(axis=1)
    counts = draw_counts(len(apart), resampling.rounds, resampling.generator("alignment"))
    return Estimate(float(apart.mean()), apart @ counts / len(apart))


def uniformity(first: Floats, second: Floats, resampling: Resampling) -> Estimate:
    """log of the mean of exp(-2 |x - y|^2) over all pairs of different positions among the 2N sentences.

    A sentence that occurs in several pairs counts each time. In a bootstrap sample, a pair is never compared with its
    own copies.

    Args:
        first, second: [N, D] unit vectors.
    """
    count = len(first)
    inner = _kernel(first, second)
    between = 0.0
    kernels: list[Values] = []
    keep = resampling.rounds > 0 and count <= MOST_RESAMPLED
    for block in _kernels_between(first, second):
        between += float(block.sum(dtype=np.float64))
        if keep:
            kernels.append(block)
    total, places = between + 2 * float(inner.sum()), 2 * count
    value = float(np.log(total / (places * (places - 1))))
    if not keep:
        return Estimate(value, np.full(resampling.rounds, np.nan))
    drawn = draw_counts(count, resampling.rounds, resampling.generator("uniformity"))
    whole = np.concatenate(kernels)
    sums = np.einsum("nr,nr->r", drawn, whole @ drawn.astype(np.float32)) + 2 * inner @ drawn
    compared = 4 * (count**2 - np.square(drawn).sum(axis=0)) + 2 * count
    return Estimate(value, np.log(sums / compared))


def _kernel(x: Floats, y: Floats) -> Values:
    return np.asarray(np.exp(-2 * np.square(x.astype(np.float64) - y.astype(np.float64)).sum(axis=1)))


def _kernels_between(first: Floats, second: Floats) -> Iterator[Values]:
    """The [N, N] sums of the four kernels between the sentences of two pairs, in row blocks, with zero diagonal."""
    sides = [first.astype(np.float32), second.astype(np.float32)]
    lengths = [np.einsum("nd,nd->n", side, side) for side in sides]
    for start in range(0, len(first), BLOCK):
        rows = slice(start, start + BLOCK)
        block = sum(
            np.exp(-2 * np.maximum(of_x[rows, None] + of_y - 2 * x[rows] @ y.T, 0))
            for x, of_x in zip(sides, lengths, strict=True)
            for y, of_y in zip(sides, lengths, strict=True)
        )
        assert not isinstance(block, int)
        places = np.arange(len(block))
        block[places, start + places] = 0
        yield block
