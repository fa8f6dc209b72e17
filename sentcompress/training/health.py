"""Whether a student is still of use while it trains: have its vectors collapsed, has it left its best score behind?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from sentcompress.evaluation.geometry import anisotropy, effective_rank
from sentcompress.evaluation.metrics import UndefinedError, normalized
from sentcompress.training.dev import Embed
from sentcompress.training.settings import Settings

# Vectors that are looked at: enough for a mean over pairs, few enough to cost nothing.
SAMPLE = 512
# Fewer lie in few directions anyway.
FEWEST = 10
# Unrelated sentences of a good encoder have cosines of 0 to 0.6. Beyond this they cannot be told apart any more.
COLLAPSED_COSINE = 0.98
COLLAPSED_RANK = 2.0
# Vectors of two dimensions use no more than two directions: of few, a quarter of what is beyond a line is asked for.
NARROW_SHARE = 0.25
# Points of dev score below the best one (or below the start) that no noise explains.
LOST = 20.0
# A rate that some methods bear with, and one that hardly any does.
HIGH_LR, VERY_HIGH_LR = 3e-4, 1e-3


@dataclass(frozen=True)
class Health:
    """How the vectors of some dev sentences lie.

    Attributes:
        mean_cosine: of two different sentences.
        effective_rank: how many directions are in use, see `evaluation.geometry`.
        dimension: how many there are.
    """

    mean_cosine: float
    effective_rank: float
    dimension: int

    @property
    def collapsed(self) -> bool:
        """Whether all sentences have next to the same vector, or all lie on a line."""
        least = min(COLLAPSED_RANK, 1 + NARROW_SHARE * (self.dimension - 1))
        return self.mean_cosine > COLLAPSED_COSINE or self.effective_rank < least


class Watch:
    """Keeps the first vectors that a dev score is taken of.

    Attributes:
        finite: whether all vectors so far, including those not kept, were finite.
    """

    def __init__(self, vectors: Embed) -> None:
        self._vectors = vectors
        self.finite = True
        self._seen: list[npt.NDArray[np.float32]] = []

    def __call__(self, ids: Tensor, mask: Tensor) -> Tensor:
        found = self._vectors(ids, mask)
        self.finite = self.finite and bool(found.isfinite().all())
        if sum(map(len, self._seen)) < SAMPLE:
            self._seen.append(found.detach().float().cpu().numpy())
        return found

    def health(self) -> Health | None:
        """None when there are too few vectors, or values that are no numbers (which the loss tells of)."""
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
    """What is wrong with a student, in words; `kind` is the same for as long as the same thing is wrong."""

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
    """What is wrong with the student and why that is likely; None while nothing is.

    Args:
        health: of the newest weights.
        score, best: dev scores: the newest, and the best so far (the start counts).
        watched: what the method shows beside its loss.
        still: whether no step since the last look had any gradient.
    """
    if still:
        return Diagnosis(
            "still", f"the loss has no gradient, so nothing is learnt; likely cause: {_stillness(settings)}"
        )
    cause, why = _cause(settings, watched)
    if health is not None and health.collapsed:
        found = (
            f"the student has collapsed: two unrelated sentences have a cosine of {health.mean_cosine:.3f}, and its "
            f"vectors use {health.effective_rank:.1f} directions; likely cause: {why}"
        )
        return Diagnosis(f"collapsed, {cause}", found)
    if best - score > LOST:
        found = f"the student has lost what it had learnt: dev {score:.2f} after {best:.2f}; likely cause: {why}"
        return Diagnosis(f"lost, {cause}", found)
    return None


def _stillness(settings: Settings) -> str:
    if settings.batch_size * settings.grad_accum == 1:
        return "a batch of one sentence has no other to be told apart from; use a larger `batch_size`"
    return "the student gives its targets already, or the loss is saturated: look at its terms and at the data"


def _cause(settings: Settings, watched: Mapping[str, float]) -> tuple[str, str]:
    """A name for the likely cause, and what to say of it."""
    rate = f"a learning rate of {settings.lr:g} is high; try a third of it, or more `warmup_steps`"
    if settings.lr > VERY_HIGH_LR:
        return "rate", rate
    # Of kernels with a gamma. A linear one has none, and its mean may be any number.
    for kernel in (watched[name] for name in ("kernel_x", "kernel_s") if name in watched):
        if not 0.01 < kernel < 0.99:
            return "kernel", f"the kernel's mean is {kernel:.3f}, where its gradient vanishes: choose another gamma"
    if watched.get("temperature", 0.0) > 1.0:
        warm = f"a temperature of {watched['temperature']:.2f} hardly tells sentences apart: fix a lower one"
        return "temperature", warm
    if settings.lr > HIGH_LR:
        return "rate", rate
    if settings.batch_size * settings.grad_accum < 16:
        return "batch", f"batches of {settings.batch_size} are small; use a larger `batch_size` or `grad_accum`"
    data = "a loss that one vector for all sentences satisfies, or targets that hardly differ: look at the data"
    return "data", data
