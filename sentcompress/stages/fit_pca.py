"""Fit a PCA (or a whitening) on a sample of the teacher's vectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.artifacts import Artifact, Request, WorkDirectory
from sentcompress.encoding.vector_shards import VectorShards
from sentcompress.errors import InputError, raise_faults
from sentcompress.models.projection import FILE, Projection
from sentcompress.progress import SILENT, Reporter, Task

COMMAND = "fit-pca"
Floats = npt.NDArray[np.float64]
# A larger sample is summed up piece by piece instead of going through scikit-learn's PCA in one.
MEMORY_LIMIT_BYTES = 2 * 1024**3
# Vectors that are read at a time.
PIECE = 10_000


@dataclass(frozen=True)
class Params:
    """What to fit. `sample` rows are drawn at random with `seed`; HPD uses 100,000."""

    dim: int = 128
    sample: int = 100_000
    seed: int = 0
    whiten: bool = False
    teacher_vectors: str | None = None
    name: str | None = None
    force: bool = False

    def check(self) -> None:
        """Raise UsageError that lists every fault."""
        faults = []
        if self.dim < 1:
            faults.append(f"--dim must be at least 1, not {self.dim}")
        if self.sample < 2:
            faults.append(f"--sample must be at least 2, not {self.sample}")
        raise_faults(faults, COMMAND)


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> Artifact:
    """Fit the projection and write it as an artifact of kind `projections`.

    Raises:
        InputError: if more dimensions are asked for than the teacher has or the sample can support.
    """
    params.check()
    source = work.get("teacher-vectors", params.teacher_vectors)
    name = params.name or f"{'whiten' if params.whiten else 'pca'}-{params.dim}"
    vectors = VectorShards(source.path)
    sample = min(params.sample, len(vectors))
    _check_dimension(params.dim, vectors.dimension, sample)
    asked = {"dim": params.dim, "sample": params.sample, "seed": params.seed, "whiten": params.whiten}
    request = Request("projections", name, COMMAND, asked, {source.reference: source.digest})
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        rows = np.random.default_rng(params.seed).choice(len(vectors), size=sample, replace=False)
        projection, total = _fit(vectors, np.sort(rows), params, reporter)
        with build.write(FILE) as path:
            projection.save(path)
        ratios = projection.explained_variance_ratio
        return build.finish(
            {
                "dimension": params.dim,
                "teacher_dimension": vectors.dimension,
                "teacher": source.facts.get("teacher"),
                "sample": sample,
                "whitened": params.whiten,
                "explained_variance": float(ratios.sum()),
                "total_variance": total,
                "explained_variance_ratio": [float(f"{ratio:.6g}") for ratio in ratios],
            }
        )


def _check_dimension(dimension: int, available: int, sample: int) -> None:
    if dimension > available:
        raise InputError(
            f"{dimension} dimensions are more than the teacher's {available}", f"use --dim {available} or less"
        )
    if dimension > sample:
        raise InputError(
            f"{dimension} dimensions cannot be fitted on {sample} sentences", "use more sentences or a smaller --dim"
        )


@dataclass(frozen=True)
class _Fitted:
    """Axes [d, D] by falling variance [d] along them; the mean [D] and the total variance of the sample."""

    axes: Floats
    variances: Floats
    mean: Floats
    total: float


def _fit(
    vectors: VectorShards, rows: npt.NDArray[np.int64], params: Params, reporter: Reporter
) -> tuple[Projection, float]:
    """The projection, and the total variance of the sample (the trace of its covariance)."""
    shape = (len(rows), vectors.dimension)
    method = _by_scikit_learn if 8 * math.prod(shape) <= MEMORY_LIMIT_BYTES else _by_sums
    with reporter.track("fitting", total=len(rows)) as task:
        fitted = method(_pieces(vectors, rows, task), shape, params.dim)
    # What float32 rounds away of a vector is about 1e-7 of it, so this much variance is no variance.
    if fitted.total <= 1e-14 * float(np.square(fitted.mean).sum()):
        raise InputError(
            f"all {len(rows)} vectors of the sample are the same",
            "is it the right teacher?",
        )
    weight = fitted.axes
    if params.whiten:
        rank = int((fitted.variances > 1e-12 * fitted.variances[0]).sum())
        if rank < params.dim:
            raise InputError(
                f"the vectors span {rank} dimensions, so they cannot be whitened to {params.dim}",
                f"use --dim {rank} or less",
            )
        weight = weight / np.sqrt(fitted.variances)[:, None]
    as_float32 = (np.asarray(a, dtype=np.float32) for a in (weight, fitted.mean, fitted.variances / fitted.total))
    return Projection(*as_float32), fitted.total


def _pieces(vectors: VectorShards, rows: npt.NDArray[np.int64], task: Task) -> Iterator[Floats]:
    """The sample as float64 [up to PIECE, D] at a time, looked over."""
    for start in range(0, len(rows), PIECE):
        wanted = rows[start : start + PIECE]
        piece = vectors.rows(wanted).astype(np.float64)
        bad = wanted[~np.isfinite(piece).all(axis=1)]
        if len(bad):
            raise InputError(
                f"the teacher's vector of row {bad[0]} is no vector: it holds NaN or infinity",
                "run: sentcompress teacher-embed --force --dtype float32 --store float32",
            )
        yield piece
        task.advance(len(piece))


def _by_scikit_learn(pieces: Iterable[Floats], shape: tuple[int, int], dim: int) -> _Fitted:
    from sklearn.decomposition import PCA

    sample, filled = np.empty(shape), 0
    for piece in pieces:
        sample[filled : filled + len(piece)] = piece
        filled += len(piece)
    model = PCA(dim, svd_solver="covariance_eigh")
    with np.errstate(invalid="ignore"):  # 0 / 0 for vectors that are all the same, which `_fit` tells
        model.fit(sample)
    return _Fitted(model.components_, model.explained_variance_, model.mean_, float(sample.var(axis=0, ddof=1).sum()))


def _by_sums(pieces: Iterable[Floats], shape: tuple[int, int], dim: int) -> _Fitted:
    """The same from covariance sums: exact for any sample, with memory for one piece and D x D numbers.

    Means and scatter matrices of pieces are merged as in Chan, Golub and LeVeque, "Updating formulae and a
    pairwise algorithm for computing sample variances" (1979), so nothing is lost to a mean far from zero.
    """
    count, dimension = shape
    seen, mean, scatter = 0, np.zeros(dimension), np.zeros((dimension, dimension))
    for piece in pieces:
        own_mean = piece.mean(axis=0)
        shift = own_mean - mean
        piece -= own_mean
        scatter += piece.T @ piece + np.outer(shift, shift) * (seen * len(piece) / (seen + len(piece)))
        mean = mean + shift * (len(piece) / (seen + len(piece)))
        seen += len(piece)
    variances, axes = np.linalg.eigh(scatter / (count - 1))
    axes = axes.T[::-1][:dim]
    # The sign of an axis is free: the largest part positive, as scikit-learn does it.
    axes = axes * np.sign(axes[np.arange(dim), np.abs(axes).argmax(axis=1)])[:, None]
    return _Fitted(axes, np.maximum(variances[::-1][:dim], 0.0), mean, float(np.trace(scatter)) / (count - 1))
