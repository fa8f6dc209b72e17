"""The learning rate of each step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sentcompress.training.settings import Settings

# A warm-up that a recipe counts in steps was meant for millions of sentences; a small run must not end inside it.
LONGEST_WARMUP = 0.1


def warmup_steps(settings: Settings, total: int, per_epoch: float) -> int:
    """How many of `total` steps the learning rate rises; `per_epoch` is the number of steps of one epoch."""
    if settings.warmup_ratio is not None:
        return round(settings.warmup_ratio * total)
    asked = max(settings.warmup_steps, round(settings.warmup_epochs * per_epoch))
    return min(asked, math.ceil(LONGEST_WARMUP * total))


def factor(step: int, *, total: int, warmup: int, kind: str) -> float:
    """The share of the peak learning rate in step `step` (from 0): linear warm-up, then the decay to zero."""
    if step < warmup:
        return (step + 1) / warmup
    if kind == "constant":
        return 1.0
    progress = (step - warmup) / max(1, total - warmup)
    return 1.0 - progress if kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))
