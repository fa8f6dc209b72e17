"""Vectors prepared so that their inner product is the similarity that a search ranks by."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sentcompress.errors import InputError
from sentcompress.evaluation.similarity import Floats, UndefinedError, normalized
from sentcompress.models.model_files import UNUSABLE
from sentcompress.numeric import at_most
from sentcompress.progress import Reporter
from sentcompress.quantities import counted


def unsearchable(label: str, error: UndefinedError) -> InputError:
    """The error for a model with such vectors."""
    return InputError(f"{label} cannot be searched: {error}", "copy or download it again, or choose another model")


def warn_of_zeros(reporter: Reporter, label: str, zeros: int, what: str) -> None:
    """Warn if a model returned zero vectors; `what` names the texts, such as "queries"."""
    if zeros:
        reporter.warn(f"{label}: {counted(zeros, 'zero vector')} among the {what}; such vectors match nothing")


def searchable(vectors: Floats, similarity: str, label: str, longest: float) -> tuple[npt.NDArray[np.float32], int]:
    """The vectors as they are searched by inner product, and the number of zero rows.

    Args:
        vectors: [N, D].
        similarity: `cosine`, for which rows are scaled to unit length, or `dot`.
        label: the model's name, for errors.
        longest: the greatest length of a vector for `dot`, from `index_plan.longest_vector`.

    Returns:
        [N, D] float32, and a count.

    Raises:
        InputError: if a value is NaN or infinite, or a vector is too long.
    """
    if similarity == "cosine":
        try:
            return normalized(vectors)
        except UndefinedError as error:
            raise unsearchable(label, error) from None
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not at_most(float(lengths.max(initial=0)), longest):
        raise InputError(
            f"{label} cannot be searched: its vectors contain NaN or infinity, or are longer than {longest:g}",
            UNUSABLE,
        )
    return vectors.astype(np.float32, copy=False), int(np.count_nonzero(lengths == 0))
