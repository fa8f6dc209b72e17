"""Fit a PCA (or a whitening) on a sample of the teacher's vectors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sentcompress.commands.fit_pca import Params
from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.errors import InputError
from sentcompress.models.principal_axes import FILE, Floats, Projection, check_dimension, principal_axes
from sentcompress.progress import LOGGED, Reporter, Task
from sentcompress.store import Artifact, Request, WorkDirectory

# Vectors read at a time.
PIECE = 10_000


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Fit the projection and write it as an artifact of kind `projections`.

    Raises:
        InputError: if `dim` is larger than the teacher's dimension or the sample supports.
    """
    params.check()
    source = work.get("teacher-vectors", params.teacher_vectors)
    name = params.name or f"{'whiten' if params.whiten else 'pca'}-{params.dim}"
    vectors = NpyFiles(source.path)
    sample = min(params.sample, len(vectors))
    check_dimension(params.dim, vectors.dimension, sample)
    request = Request.of(
        params, name, {source.reference: source.digest}, {"dim": params.dim}, teacher_vectors=source.name
    )
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        rows = np.random.default_rng(params.seed).choice(len(vectors), size=sample, replace=False)
        projection, total = _fit(source, vectors, np.sort(rows), params, reporter)
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


def _fit(
    source: Artifact, vectors: NpyFiles, rows: npt.NDArray[np.int64], params: Params, reporter: Reporter
) -> tuple[Projection, float]:
    """The projection, and the total variance of the sample (the trace of its covariance)."""
    with reporter.track("fitting", total=len(rows)) as task:
        fitted = principal_axes(_pieces(source, vectors, rows, task), (len(rows), vectors.dimension), params.dim)
    return fitted.projection(whiten=params.whiten), fitted.total


def _pieces(source: Artifact, vectors: NpyFiles, rows: npt.NDArray[np.int64], task: Task) -> Iterator[Floats]:
    """The sample as float64 pieces of [up to PIECE, D], checked for NaN and infinity."""
    for start in range(0, len(rows), PIECE):
        wanted = rows[start : start + PIECE]
        piece = vectors.rows(wanted).astype(np.float64)
        bad = wanted[~np.isfinite(piece).all(axis=1)]
        if len(bad):
            raise InputError(
                f"the teacher's vector of row {bad[0]} contains NaN or infinity",
                f"run: {source.command_line()} --force --dtype float32 --store float32",
            )
        yield piece
        task.advance(len(piece))
