"""Linear projections of vectors: PCA and whitening, as `W x + b`, and the file that holds one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from sentcompress.errors import InputError
from sentcompress.models.finite_tensors import require_sound, unsound

FILE = "projection.safetensors"
Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Projection:
    """y = W x + b, with b = -W mean, so that the centring is never lost.

    Attributes:
        weight: [d, D], rows by falling explained variance.
        mean: [D], mean of the vectors that it was fitted on.
        explained_variance_ratio: [d], share of the total variance of each output dimension before whitening.
    """

    weight: Array
    mean: Array
    explained_variance_ratio: Array

    @property
    def bias(self) -> Array:
        """[d]."""
        with np.errstate(over="ignore", invalid="ignore"):  # checked when it is saved
            return np.asarray(-self.weight @ self.mean, dtype=np.float32)

    def apply(self, vectors: Array) -> Array:
        """[N, D] -> [N, d]."""
        return np.asarray(vectors @ self.weight.T + self.bias, dtype=np.float32)

    def truncated(self, dimension: int) -> Projection:
        """The first `dimension` outputs only."""
        return Projection(self.weight[:dimension], self.mean, self.explained_variance_ratio[:dimension])

    def save(self, path: Path) -> None:
        """Write weight, bias, mean and explained_variance_ratio as safetensors, float32.

        Raises:
            SentcompressError: if one of them has NaN or infinity in float32; nothing is written in that case.
        """
        tensors = {
            "weight": self.weight,
            "bias": self.bias,
            "mean": self.mean,
            "explained_variance_ratio": self.explained_variance_ratio,
        }
        stored = {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in tensors.items()}
        require_sound(stored, "the projection", "the vectors are too large or too small for float32; scale them")
        save_file(stored, path)

    @classmethod
    def load(cls, folder: Path) -> Projection:
        """Read the projection of an artifact of kind `projections`.

        Raises:
            InputError: if its file is missing or damaged, or holds NaN or infinity.
        """
        try:
            tensors = load_file(folder / FILE)
            found = cls(tensors["weight"], tensors["mean"], tensors["explained_variance_ratio"])
        except (OSError, SafetensorError, KeyError) as error:
            raise InputError(f"{folder / FILE} is damaged ({error})", "run: sentcompress fit-pca --force") from None
        if broken := unsound(tensors):
            raise InputError(
                f"{folder / FILE} is damaged: NaN or infinity in {broken}", "run: sentcompress fit-pca --force"
            )
        return found
