"""Detects during training whether a student's vectors have collapsed or its dev score has dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sentcompress.evaluation.geometry import anisotropy, effective_rank
from sentcompress.evaluation.similarity import UndefinedError, normalized
from sentcompress.signals import check
from sentcompress.training.dev import Embed
from sentcompress.training.settings import Settings

# Vectors to examine: enough for a mean over pairs, few enough to be fast.
SAMPLE = 512
# With fewer vectors, the effective rank is low anyway.
FEWEST = 10
# Unrelated sentences of a good encoder have cosines of 0 to 0.6; above this they are indistinguishable.
COLLAPSED_COSINE = 0.98
COLLAPSED_RANK = 2.0
# For vectors of few dimensions, the required rank is 1 plus this share of the remaining dimensions.
NARROW_SHARE = 0.25
# A drop of the dev score below the best one (or the start) that noise cannot explain.
LOST = 20.0
# A kernel whose mean value is below this has next to no gradient.
VANISHED = 0.01
# The names under which the mean values of kernels with a gamma are logged, and the vectors that they are computed from.
KERNELS = {"kernel_x": "the student's input X", "kernel_s": "the student's vectors S"}
# A learning rate that only some methods tolerate, and one that hardly any does.
HIGH_LR, VERY_HIGH_LR = 3e-4, 1e-3


@dataclass(frozen=True)
class Health:
    """Statistics of the vectors of some dev sentences.

    Attributes:
        mean_cosine: mean cosine of two different sentences.
        effective_rank: number of directions in use; see `evaluation.geometry`.
        dimension: number of dimensions.
    """

    mean_cosine: float
    effective_rank: float
    dimension: int

    @property
    def collapsed(self) -> bool:
        """Whether all sentences have nearly the same vector, or all vectors lie on a line."""
        least = min(COLLAPSED_RANK, 1 + NARROW_SHARE * (self.dimension - 1))
        return self.mean_cosine > COLLAPSED_COSINE or self.effective_rank < least


class Watch:
    """Keeps the first vectors of a dev score for `Health`.

    Attributes:
        finite: whether all vectors so far, including those not kept, were finite.
    """

    def __init__(self, vectors: Embed) -> None:
        self._vectors = vectors
        self.finite = True
        self._seen: list[npt.NDArray[np.float32]] = []

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        check()  # scoring can take long
        found = self._vectors(ids, mask)
        self.finite = self.finite and bool(found.isfinite().all())
        if sum(map(len, self._seen)) < SAMPLE:
            self._seen.append(found.detach().float().cpu().numpy())
        return found

    def health(self) -> Health | None:
        """The statistics; None if there are too few vectors, or NaN or infinity (which the loss check reports)."""
        if sum(map(len, self._seen)) < FEWEST:
            return None
        vectors = np.unique(np.concatenate(self._seen)[:SAMPLE], axis=0)
        dimension = int(vectors.shape[1])
        if len(vectors) == 1:
            return Health(1.0, 1.0, dimension)
        if not np.isfinite(vectors).all():
            return None
        try:
            unit, _ = normalized(vectors)
            return Health(anisotropy(unit), effective_rank(unit), dimension)
        except UndefinedError:
            return Health(1.0, 1.0, dimension)


@dataclass(frozen=True)
class Diagnosis:
    """A problem of a student, in words; `kind` identifies the problem while it lasts."""

    kind: str
    text: str


def diagnose(
    health: Health | None,
    *,
    score: float,
    best: float,
    settings: Settings,
    watched: Mapping[str, float],
    still: bool = False,
) -> Diagnosis | None:
    """Diagnose the student: the problem and its likely cause; None if there is no problem.

    Args:
        health: statistics of the newest weights.
        score, best: the newest dev score, and the best so far, including the start.
        watched: the values that the method logs next to its loss.
        still: whether every gradient since the last check was zero.
    """
    if still:
        return Diagnosis(
            "still", f"the loss has no gradient, so the student does not learn; likely cause: {_stillness(settings)}"
        )
    cause, why = _cause(settings, watched)
    if health is not None and health.collapsed:
        found = (
            f"the student has collapsed: unrelated sentences have a mean cosine of {health.mean_cosine:.3f}, and the "
            f"effective rank of its vectors is {health.effective_rank:.1f}; likely cause: {why}"
        )
        return Diagnosis(f"collapsed, {cause}", found)
    if best - score > LOST:
        found = f"the dev score dropped from {best:.2f} to {score:.2f}; likely cause: {why}"
        return Diagnosis(f"lost, {cause}", found)
    return None


def vanished_kernel(watched: Mapping[str, float]) -> str | None:
    """Say that a kernel of the bottleneck term has vanished, and what to do; None if none has."""
    means = {name: watched[name] for name in KERNELS if watched.get(name, 1.0) < VANISHED}
    if not means:
        return None
    found = " and ".join(f"{KERNELS[name]} is {mean:.1e} ({name})" for name, mean in means.items())
    return (
        f"the mean kernel value of {found}: the kernel treats nearly all sentences as unrelated, so the HSIC term "
        "has almost no gradient; set a smaller gamma, kernel=imq or normalise=true (`options`)"
    )


def _stillness(settings: Settings) -> str:
    if settings.batch_size * settings.grad_accum == 1:
        return "a batch of one sentence has no negatives; use a larger `batch_size`"
    return "the student already matches its targets, or the loss is saturated; check its terms and the data"


def _cause(settings: Settings, watched: Mapping[str, float]) -> tuple[str, str]:
    """The likely cause: a name and a message."""
    rate = f"a learning rate of {settings.lr:g} is high; try a third of it, or more `warmup_steps`"
    if settings.lr > VERY_HIGH_LR:
        return "rate", rate
    # Only kernels with a gamma: the mean of a linear kernel can be any number.
    for kernel in (watched[name] for name in KERNELS if name in watched):
        if not VANISHED < kernel < 0.99:
            return "kernel", f"the kernel's mean is {kernel:.3f}, where its gradient vanishes; choose another gamma"
    if watched.get("temperature", 0.0) > 1.0:
        warm = f"a temperature of {watched['temperature']:.2f} hardly separates sentences; set a lower fixed one"
        return "temperature", warm
    if settings.lr > HIGH_LR:
        return "rate", rate
    if settings.batch_size * settings.grad_accum < 16:
        return "batch", f"batches of {settings.batch_size} are small; use a larger `batch_size` or `grad_accum`"
    data = "a loss that a constant vector minimises, or targets that hardly differ; check the data"
    return "data", data
