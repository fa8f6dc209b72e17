"""Parameters of the number formats, from a sample of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from sentcompress.errors import InputError
from sentcompress.extras import require
from sentcompress.quantization.codecs import Binary, Codec, Float16, Float32, Int4, Int8, ProductCodes, Values

# Shares of the sample that lie beyond each end of a range; the one with the smallest squared error is used.
TAILS = (0.0, 0.0001, 0.001, 0.003, 0.01, 0.02, 0.04)
# Training points of a centroid: fewer give poor centroids, more are ignored.
POINTS_PER_CENTROID, MOST_POINTS_PER_CENTROID = 8, 64
CENTROIDS, FEWEST_CENTROIDS = 256, 16
ITERATIONS = 25
# A smaller share of the largest variance counts as this share, so that its logarithm is finite.
SMALLEST_VARIANCE = 1e-6


def fit_uniform(kind: type[Int8], sample: Values) -> Int8:
    """Ranges of each dimension between two quantiles of the sample [N, d], chosen by squared error."""
    best = np.full(sample.shape[1], np.inf)
    low, step = (np.zeros(sample.shape[1], dtype=np.float32) for _ in range(2))
    for tail in TAILS:
        ends = np.quantile(sample, (tail, 1 - tail), axis=0).astype(np.float32)
        tried = kind(ends[0], (ends[1] - ends[0]) / np.float32(2**kind.bits))
        errors = np.square(tried.decode(tried.encode(sample)) - sample).mean(axis=0)
        better = errors < best
        best = np.where(better, errors, best)
        low, step = np.where(better, tried.low, low), np.where(better, tried.step, step)
    return kind(low, step)


def fit_binary(sample: Values) -> Binary:
    """The threshold is the mean of each dimension; a bit stands for the mean of the values on its side."""
    threshold = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    above = sample > threshold
    counts = above.sum(axis=0)
    upper = np.where(above, sample, 0).sum(axis=0, dtype=np.float64) / np.maximum(counts, 1)
    lower = np.where(above, 0, sample).sum(axis=0, dtype=np.float64) / np.maximum(len(sample) - counts, 1)
    return Binary(threshold, lower.astype(np.float32), np.where(counts, upper, threshold).astype(np.float32))


def fit_product(sample: Values, segments: int, seed: int) -> ProductCodes:
    """Centroids of each segment by FAISS's k-means: 256, or as many as the sample can train.

    Raises:
        InputError: if FAISS is not installed, or the sample is too small for 16 centroids.
    """
    faiss = require("faiss")
    centroids = centroids_for(len(sample))
    width = sample.shape[1] // segments
    order = balanced_order(sample.var(axis=0, dtype=np.float64), segments)
    books = np.empty((segments, centroids, width), dtype=np.float32)
    for segment, mine in enumerate(order.reshape(segments, width)):
        trained = faiss.Kmeans(
            width,
            centroids,
            niter=ITERATIONS,
            seed=seed % 2**31,  # FAISS holds it in 32 bits, with a sign
            min_points_per_centroid=1,  # checked above; FAISS would print to standard error
            max_points_per_centroid=MOST_POINTS_PER_CENTROID,
        )
        trained.train(np.ascontiguousarray(sample[:, mine]))
        books[segment] = trained.centroids
    return ProductCodes(books, order)


def balanced_order(variances: npt.NDArray[np.float64], segments: int) -> npt.NDArray[np.int32]:
    """Dimensions in segments of equal width, with products of variances that differ as little as possible: [d].

    "Eigenvalue allocation" of Ge et al., "Optimized Product Quantization" (2013): every segment has the same number of
    bits, so each should hold the same amount of variance.
    """
    width = len(variances) // segments
    members: list[list[int]] = [[] for _ in range(segments)]
    smallest = max(float(variances.max(initial=0)) * SMALLEST_VARIANCE, float(np.finfo(np.float64).tiny))
    logarithms = np.log(np.maximum(variances, smallest) / smallest)
    sums = np.zeros(segments)
    for dimension in np.argsort(-logarithms, kind="stable"):
        chosen = min((one for one in range(segments) if len(members[one]) < width), key=sums.__getitem__)
        members[chosen].append(int(dimension))
        sums[chosen] += logarithms[dimension]
    return np.array(members, dtype=np.int32).reshape(-1)


def centroids_for(points: int) -> int:
    """The number of centroids that this many points can train: a power of two from 16 to 256.

    Raises:
        InputError: if there are too few for 16.
    """
    centroids = CENTROIDS
    while points < POINTS_PER_CENTROID * centroids:
        centroids //= 2
    if centroids < FEWEST_CENTROIDS:
        least = POINTS_PER_CENTROID * FEWEST_CENTROIDS
        raise InputError(f"{points} texts are too few to fit pq, which needs {least}", "choose another `store`")
    return centroids


FITS: Mapping[str, Callable[[Values, int, int], Codec]] = {
    "float32": lambda sample, size, seed: Float32(sample.shape[1]),
    "float16": lambda sample, size, seed: Float16(sample.shape[1]),
    "int8": lambda sample, size, seed: fit_uniform(Int8, sample),
    "int4": lambda sample, size, seed: fit_uniform(Int4, sample),
    "binary": lambda sample, size, seed: fit_binary(sample),
    "pq": fit_product,
}
