"""Principal axes of a sample of vectors, and the PCA and whitening made from them, as a file or inside a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.models.checks import require_sound, unsound
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.model_files import UNUSABLE
from sentcompress.quantities import counted

FILE = "projection.safetensors"
AGAIN = "run the fit-pca command that made it again, with --force"
Array = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
# Larger samples are accumulated in pieces instead of using scikit-learn's PCA.
MEMORY_LIMIT_BYTES = 2 * 1024**3
# Rounding errors of float32 are up to 1e-6 of a vector's length, so an axis with less variance than the square of
# that contains only rounding errors.
ROUNDING_VARIANCE = 1e-12


@dataclass(frozen=True)
class Projection:
    """y = W x + b, with b = -W mean, which includes the centring.

    Attributes:
        weight: [d, D], rows by decreasing explained variance.
        mean: [D], mean of the vectors that it was fitted on.
        explained_variance_ratio: [d], each output dimension's share of the total variance, before whitening.
    """

    weight: Array
    mean: Array
    explained_variance_ratio: Array

    @property
    def bias(self) -> Array:
        """b = -W mean: [d]."""
        with np.errstate(over="ignore", invalid="ignore"):  # checked when it is saved
            return np.asarray(-self.weight @ self.mean, dtype=np.float32)

    def apply(self, vectors: Array) -> Array:
        """Project vectors: [N, D] -> [N, d]."""
        return np.asarray(vectors @ self.weight.T + self.bias, dtype=np.float32)

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
            raise InputError(f"{folder / FILE} is damaged ({error})", AGAIN) from None
        if broken := unsound(tensors):
            raise InputError(f"{folder / FILE} is damaged: NaN or infinity in {broken}", AGAIN)
        return found


@dataclass(frozen=True)
class PrincipalAxes:
    """Axes [d, D] by decreasing variance [d]; mean [D] and total variance of the sample."""

    axes: Floats
    variances: Floats
    mean: Floats
    total: float

    @property
    def square_length(self) -> float:
        """The mean squared length of the vectors."""
        return self.total + float(np.square(self.mean).sum())

    @property
    def rank(self) -> int:
        """The number of axes whose variance is more than rounding error."""
        return int((self.variances > ROUNDING_VARIANCE * self.square_length).sum())

    def whitening(self) -> Floats:
        """The axes scaled so that every output has variance one: [d, D].

        Raises:
            InputError: if the vectors span fewer dimensions than there are axes.
        """
        if self.rank < len(self.axes):
            raise InputError(
                f"the vectors span {self.rank} dimensions, so they cannot be whitened to {len(self.axes)}",
                f"use `dim` {self.rank} or less" if self.rank else "choose another model, or more varied sentences",
            )
        return np.asarray(self.axes / np.sqrt(self.variances)[:, None])

    def projection(self, *, whiten: bool) -> Projection:
        """The projection onto the axes, optionally whitened.

        Raises:
            InputError: see `whitening`.
        """
        weight = self.whitening() if whiten else self.axes
        with np.errstate(over="ignore"):  # checked when it is saved
            as_float32 = [np.asarray(a, dtype=np.float32) for a in (weight, self.mean, self.variances / self.total)]
        return Projection(*as_float32)


def principal_axes(pieces: Iterable[Floats], shape: tuple[int, int], dim: int) -> PrincipalAxes:
    """The first `dim` principal axes of a sample, given in pieces [n, D] float64; `shape` is that of the whole sample.

    Raises:
        InputError: if all vectors are equal, there is only one, or one contains NaN or infinity.
    """
    if shape[0] < 2:
        raise InputError(f"{shape[0]} sentence has no variance", "use more sentences")
    method = _by_scikit_learn if 8 * math.prod(shape) <= MEMORY_LIMIT_BYTES else _by_sums
    fitted = method(_looked_over(pieces), shape, dim)
    # Rounding to float32 changes a vector by about 1e-7 of its length, so less variance than this is none.
    if not fitted.total > 1e-14 * float(np.square(fitted.mean).sum()):
        raise InputError(
            f"all {shape[0]} vectors of the sample are the same", "choose another model, or more varied sentences"
        )
    return fitted


def _looked_over(pieces: Iterable[Floats]) -> Iterator[Floats]:
    for piece in pieces:
        if not np.isfinite(piece).all():
            raise InputError(
                "the model returns vectors with NaN or infinity",
                UNUSABLE,
            )
        yield piece


def check_dimension(dimension: int, available: int, sample: int, whose: str = "the teacher's") -> None:
    """Raise InputError for more dimensions than the vectors have, or than there are vectors in the sample."""
    if dimension > available:
        raise InputError(f"{dimension} dimensions are more than {whose} {available}", f"use `dim` {available} or less")
    if dimension > sample:
        raise InputError(
            f"{dimension} dimensions cannot be fitted on {counted(sample, 'sentence')}",
            ("use a smaller `dim`", "add sentences", "raise `sample`"),
        )


def _by_scikit_learn(pieces: Iterable[Floats], shape: tuple[int, int], dim: int) -> PrincipalAxes:
    from sklearn.decomposition import PCA

    sample, filled = np.empty(shape), 0
    for piece in pieces:
        sample[filled : filled + len(piece)] = piece
        filled += len(piece)
    model = PCA(dim, svd_solver="covariance_eigh")
    with np.errstate(invalid="ignore"):  # 0 / 0 if all vectors are equal, which the caller reports
        model.fit(sample)
    total = float(sample.var(axis=0, ddof=1).sum())
    return PrincipalAxes(model.components_, model.explained_variance_, model.mean_, total)


def _by_sums(pieces: Iterable[Floats], shape: tuple[int, int], dim: int) -> PrincipalAxes:
    """The same from covariance sums: exact for any sample, with memory for one piece and D x D numbers.

    Means and scatter matrices of the pieces are merged as in Chan, Golub and LeVeque, "Updating formulae and a
    pairwise algorithm for computing sample variances" (1979), so a mean far from zero costs no precision.
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
    # The sign of an axis is arbitrary; as in scikit-learn, the largest component is positive.
    axes = axes * np.sign(axes[np.arange(dim), np.abs(axes).argmax(axis=1)])[:, None]
    return PrincipalAxes(axes, np.maximum(variances[::-1][:dim], 0.0), mean, float(np.trace(scatter)) / (count - 1))


def whitened(encoder: Encoder, axes: PrincipalAxes) -> Encoder:
    """A model that whitens the unnormalised vectors of `encoder` and then normalises them.

    If the last Dense layer is linear, both maps are merged: W (A x + a - mean) = (W A) x + W (a - mean). After an
    activation (SimCSE's Tanh), or without a Dense layer, the whitening becomes a new layer. The transformer is shared
    with `encoder`.

    Raises:
        InputError: if the vectors span fewer dimensions than there are axes.
    """
    weight = torch.from_numpy(axes.whitening())
    shift = -torch.from_numpy(axes.mean)
    layers = encoder.dense_layers
    if layers and layers[-1].activation_name == "Identity":
        linear = layers.pop().linear
        own = torch.zeros(linear.out_features) if linear.bias is None else linear.bias.detach()
        bias, weight = weight @ (own.double() + shift), weight @ linear.weight.detach().double()
    else:
        bias = weight @ shift
    return encoder.with_dense([*layers, _dense(weight, bias)], normalize=True).eval()


def _dense(weight: Tensor, bias: Tensor) -> Dense:
    layer = Dense(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        layer.linear.weight.copy_(weight)
        layer.linear.bias.copy_(bias)
    return layer
