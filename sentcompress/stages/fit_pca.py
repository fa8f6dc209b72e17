"""Fit a PCA (or a whitening) on a sample of the teacher's vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.artifacts import Artifact, Request, WorkDirectory
from sentcompress.encoding.vector_shards import VectorShards
from sentcompress.errors import InputError, raise_faults
from sentcompress.models.projection import FILE, Projection
from sentcompress.progress import SILENT, Reporter

COMMAND = "fit-pca"
# Above this the sample goes through IncrementalPCA piece by piece instead of one call of PCA.
MEMORY_LIMIT_BYTES = 2 * 1024**3


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


def _fit(
    vectors: VectorShards, rows: npt.NDArray[np.int64], params: Params, reporter: Reporter
) -> tuple[Projection, float]:
    """The projection, and the total variance of the sample (the trace of its covariance)."""
    from sklearn.decomposition import PCA, IncrementalPCA

    chunk = max(params.dim, 10_000)
    with reporter.track("fitting", total=len(rows)) as task:
        if len(rows) * vectors.dimension * 4 <= MEMORY_LIMIT_BYTES:
            model = PCA(params.dim, svd_solver="covariance_eigh", whiten=params.whiten)
            model.fit(vectors.rows(rows).astype(np.float64))
            task.advance(len(rows))
        else:
            model = IncrementalPCA(params.dim, whiten=params.whiten)
            for start in range(0, len(rows), chunk):
                piece = rows[start : start + chunk]
                if len(piece) >= params.dim:  # what IncrementalPCA needs of each piece
                    model.partial_fit(vectors.rows(piece))
                task.advance(len(piece))
    weight = model.components_
    if params.whiten:
        if model.explained_variance_[-1] <= 1e-12 * model.explained_variance_[0]:
            raise InputError(
                f"the vectors span fewer than {params.dim} dimensions, so they cannot be whitened to that many",
                "use a smaller --dim",
            )
        weight = weight / np.sqrt(model.explained_variance_)[:, None]
    total = float(model.explained_variance_.sum() / model.explained_variance_ratio_.sum())
    as_float32 = (np.asarray(a, dtype=np.float32) for a in (weight, model.mean_, model.explained_variance_ratio_))
    return Projection(*as_float32), total
