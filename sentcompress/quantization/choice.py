"""Chooses a quantizer within a number of bytes per vector: every format that fits is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sentcompress.errors import InputError
from sentcompress.extras import is_installed, require
from sentcompress.models.principal_axes import principal_axes
from sentcompress.progress import Reporter
from sentcompress.quantities import counted
from sentcompress.quantization.codecs import AUTO, CODECS, Float32, ProductCodes, Values
from sentcompress.quantization.fitting import FEWEST_CENTROIDS, FITS, POINTS_PER_CENTROID, centroids_for
from sentcompress.quantization.quantizer import Quantizer

PQ = ProductCodes.name
# Shares of the model's dimensions that product codes are tried with.
SHARES = (1.0, 0.75, 0.5)
PREFIXES = (32, 64, 128, 256)
# Scores a search: rotated queries [Q, d] and documents [N, d] to [Q] values, of which a higher mean is better.
Score = Callable[[Values, Values], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class StoragePlan:
    """One way to store vectors; `segments` of product codes, 0 for the other formats."""

    format: str
    dimension: int
    segments: int = 0


@dataclass(frozen=True)
class Trial:
    """A fitted quantizer and the scores of the held-out queries, [Q]."""

    quantizer: Quantizer
    scores: npt.NDArray[np.float64]

    @property
    def order(self) -> tuple[float, int]:
        """Sort key; the best trial has the largest: the mean score, rounded to four digits, then the fewest bytes."""
        return round(float(self.scores.mean()), 4), -self.quantizer.bytes


def plans(
    vector_bytes: int, available: int, number_format: str = AUTO, dimension: int | None = None
) -> list[StoragePlan]:
    """The ways to store vectors that fit.

    Args:
        vector_bytes: bytes of a stored vector.
        available: the dimensions of the fitted rotation: those of the model's vectors, or the number of training texts
            if that is smaller.
        number_format: one of `codecs.FORMATS`.
        dimension: the number of dimensions; by default as many as fit.

    Raises:
        InputError: if nothing fits, or product codes of `dimension` would use less than half of the bytes that they
            could.
    """
    found: list[StoragePlan] = []
    for name, codec in CODECS.items():
        most = min(available, 8 * vector_bytes // codec.bits) if codec.bits else 0
        if number_format in (AUTO, name) and 0 < (dimension or most) <= most:
            found.append(StoragePlan(name, dimension or most))
    # Where int8 holds all dimensions, product codes have nothing to add.
    if number_format == PQ or (number_format == AUTO and (dimension is None or dimension > vector_bytes)):
        found += _product_plans(vector_bytes, available, dimension)
    if not found and number_format == PQ:
        raise InputError("pq needs vectors of at least two dimensions", "use a larger `dim`, or another `store`")
    if not found:
        what = "vectors" if number_format == AUTO else f"{number_format} vectors"
        much = f" of {dimension} dimensions" if dimension else ""
        raise InputError(
            f"{what}{much} do not fit into {counted(vector_bytes, 'byte')}",
            "use a larger `vector_bytes`, or a smaller `dim`",
        )
    if number_format == PQ:
        _refuse_few_segments(found[0], vector_bytes)
    return found


def check_fittable(wanted: Sequence[StoragePlan], points: int) -> None:
    """Raise InputError if only product codes are wanted, and this number of training vectors cannot fit them here."""
    if all(plan.format == PQ for plan in wanted):
        require("faiss")
        centroids_for(points)


def _product_plans(vector_bytes: int, available: int, dimension: int | None) -> list[StoragePlan]:
    """Product codes with at least two dimensions a segment: with one, they are int8 with uneven steps."""
    if dimension is not None:
        counts = range(min(vector_bytes, dimension // 2), 0, -1)
        segments = next((count for count in counts if dimension % count == 0), 0)
        return [StoragePlan(PQ, dimension, segments)] if segments else []
    segments = min(vector_bytes, available // 2)
    wanted = [int(available * share) // segments * segments for share in SHARES] if segments else []
    return [StoragePlan(PQ, found, segments) for found in dict.fromkeys(wanted) if found > segments]


def _refuse_few_segments(plan: StoragePlan, vector_bytes: int) -> None:
    most = min(vector_bytes, plan.dimension // 2)
    if 2 * plan.segments < most:
        raise InputError(
            f"pq divides {plan.dimension} dimensions into at most {counted(plan.segments, 'segment')} of equal length, "
            f"which would use {plan.segments} of {vector_bytes} bytes",
            f"use a multiple of {most} for `dim`, such as {plan.dimension // most * most}",
        )


def turn_of(vectors: Values) -> Quantizer:
    """A quantizer that only rotates to the principal axes of the vectors [N, D]: all dimensions, as float32.

    The mean is not subtracted, because this would change the cosines; it is always in the span of all axes. If
    dimensions are cut, the axes of the centred vectors preserve rankings better than those of the vectors themselves.

    Raises:
        InputError: if all vectors are equal, or one contains NaN or infinity.
    """
    dimension = vectors.shape[1]
    fitted = principal_axes([vectors.astype(np.float64)], (len(vectors), dimension), min(dimension, len(vectors)))
    return Quantizer(np.ascontiguousarray(fitted.axes, dtype=np.float32), Float32(len(fitted.axes)))


def fitted(plan: StoragePlan, turn: Quantizer, vectors: Values, seed: int) -> Quantizer:
    """The quantizer of a plan, with parameters from training vectors [N, D]."""
    cut = shortened(turn, plan.dimension)
    codec = FITS[plan.format](cut.turn(vectors), plan.segments, seed)
    return Quantizer(cut.axes, codec)


def shortened(turn: Quantizer, dimension: int) -> Quantizer:
    """The first dimensions of a rotation, as float32."""
    return Quantizer(turn.axes[:dimension], Float32(dimension))


def trials(
    wanted: Sequence[StoragePlan], turn: Quantizer, vectors: Values, held_out: HeldOut, seed: int, reporter: Reporter
) -> Iterator[Trial]:
    """Fit and score every plan, in order. Product codes that cannot be fitted here are skipped with a note.

    Raises:
        InputError: if none can be fitted.
    """
    optional = any(plan.format != PQ for plan in wanted)
    with reporter.track("trying formats", total=len(wanted), unit="formats") as task:
        for plan in wanted:
            skipped = _obstacle(plan, len(vectors))
            if skipped and optional:
                reporter.note(f"pq with {plan.dimension} dimensions skipped: {skipped}")
            else:
                quantizer = fitted(plan, turn, vectors, seed)
                yield Trial(quantizer, held_out.scores(quantizer))
            task.advance()


def _obstacle(plan: StoragePlan, points: int) -> str | None:
    if plan.format != PQ:
        return None
    if not is_installed("faiss"):
        return "it needs faiss, which is not installed"
    least = POINTS_PER_CENTROID * FEWEST_CENTROIDS
    return None if points >= least else f"it needs at least {least} texts to fit on, and there are {points}"


@dataclass(frozen=True)
class HeldOut:
    """Vectors of held-out queries [Q, D] and documents [N, D], and how a search of them is scored."""

    queries: Values
    documents: Values
    score: Score

    def scores(self, quantizer: Quantizer, dimension: int | None = None) -> npt.NDArray[np.float64]:
        """Scores of float32 queries against stored documents, [Q]; of their first dimensions, if given."""
        stored = quantizer.decode(quantizer.encode(self.documents))
        return self.score(quantizer.turn(self.queries)[:, :dimension], stored[:, :dimension])


def table_of_prefixes(turn: Quantizer, chosen: Quantizer, held_out: HeldOut) -> list[dict[str, float | int | None]]:
    """The mean score of the first 32, 64, 128, 256 and of all dimensions, as float32 and as stored.

    `stored` is None where the chosen quantizer has fewer dimensions.
    """
    widths = sorted({*(width for width in PREFIXES if width < turn.dimension), chosen.dimension, turn.dimension})
    return [
        {
            "dimension": width,
            "float32": float(held_out.scores(shortened(turn, width)).mean()),
            "stored": float(held_out.scores(chosen, width).mean()) if width <= chosen.dimension else None,
        }
        for width in widths
    ]
