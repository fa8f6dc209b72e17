"""The numbers that a training run goes by, after recipe and flags have been put together; and the learning rate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sentcompress.methods.hyperparameters import Hyperparameters

# float16 would need its loss scaled.
TRAINING_DTYPES = ("auto", "float32", "bfloat16")
SCHEDULES = ("cosine", "linear", "constant")
# A warm-up that a recipe counts in steps was meant for millions of sentences; a small run must not end inside it.
LONGEST_WARMUP = 0.1
# What a sentence may take of a batch on average, unless told otherwise: longer ones make smaller batches.
TOKENS_A_ROW = 64


@dataclass(frozen=True)
class Overrides:
    """What was asked for in place of a method's recipe; None leaves a number to the recipe.

    Attributes:
        warmup_ratio: warm-up as a share of all steps, in place of what the recipe says in steps or epochs.
        batch_tokens: padding included, a batch holds no more tokens than this; None is `batch_size` x 64, and no limit
            for contrastive methods, whose rows are each other's negatives.
        grad_accum: so many batches make one step. Contrastive methods see the rows of all of them as negatives.
        ema: score and keep an exponential moving average of the weights with this decay, not the weights themselves.
        max_steps: stop after so many steps, with the schedule shortened to match; None is no limit.
        checkpoint_seconds: time between checkpoints; it has no influence on the result.
    """

    lr: float | None = None
    epochs: int | None = None
    batch_size: int | None = None
    schedule: str | None = None
    warmup_steps: int | None = None
    weight_decay: float | None = None
    clip: float | None = None
    max_length: int | None = None
    dropout: float | None = None
    eval_every: int | None = None
    patience: float | None = None
    warmup_ratio: float | None = None
    batch_tokens: int | None = None
    grad_accum: int = 1
    max_steps: int | None = None
    ema: float | None = None
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    checkpoint_seconds: float = 60.0

    def apply(self, recipe: Hyperparameters) -> Hyperparameters:
        """The recipe with what was asked for, and who asked, in its place."""
        asked = {name: value for name, value in vars(self).items() if name in recipe.values()}
        if self.warmup_steps is not None:
            asked["warmup_epochs"] = 0
        return recipe.overridden(asked, "asked for")


@dataclass(frozen=True)
class Settings:
    """See `sentcompress.methods.hyperparameters.Hyperparameters` and `Overrides` for each number."""

    lr: float
    epochs: int
    batch_size: int
    schedule: str
    warmup_steps: int
    warmup_epochs: float
    weight_decay: float
    clip: float
    betas: tuple[float, float]
    max_length: int
    dropout: float | None
    eval_every: int | None
    patience: float | None
    warmup_ratio: float | None = None
    batch_tokens: int | None = None
    grad_accum: int = 1
    max_steps: int | None = None
    ema: float | None = None
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    checkpoint_seconds: float = 60.0

    @classmethod
    def of(cls, recipe: Hyperparameters, asked: Overrides) -> Settings:
        """Hyperparameters and flags put together."""
        values: dict[str, Any] = {**vars(asked), **asked.apply(recipe).values()}
        first, second = (float(beta) for beta in str(values.pop("betas")).split())
        return cls(**values, betas=(first, second))

    def token_budget(self, contrastive: bool = False) -> int:
        """The tokens that a batch may hold, padding included.

        Where its rows are each other's negatives, no row is left out unless `batch_tokens` asks for it.
        """
        return self.batch_tokens or self.batch_size * (
            self.max_length if contrastive else min(self.max_length, TOKENS_A_ROW)
        )

    def that_matter(self) -> dict[str, Any]:
        """All that the result depends on: not the device, nor how often a checkpoint is written."""
        # `ema` only where it was asked for, so that students of before there was one stay fresh.
        left_out = {"device", "checkpoint_seconds"} | ({"ema"} if self.ema is None else set())
        return {
            **{name: value for name, value in vars(self).items() if name not in left_out},
            "betas": list(self.betas),
        }

    def faults(self) -> list[str]:
        """What is wrong with the numbers, in words."""
        checks = [
            (0 < self.lr < math.inf, "lr", "above 0"),
            (self.epochs >= 1, "epochs", "at least 1"),
            (self.batch_size >= 1, "batch_size", "at least 1"),
            (self.schedule in SCHEDULES, "schedule", f"one of {', '.join(SCHEDULES)}"),
            (self.warmup_steps >= 0, "warmup_steps", "at least 0"),
            (self.warmup_ratio is None or 0 <= self.warmup_ratio <= 1, "warmup_ratio", "from 0 to 1"),
            (0 <= self.weight_decay < math.inf, "weight_decay", "at least 0"),
            (self.clip >= 0, "clip", "at least 0"),
            (self.max_length >= 3, "max_length", "at least 3 tokens"),
            (self.dropout is None or 0 <= self.dropout < 1, "dropout", "from 0 to below 1"),
            (self.eval_every is None or self.eval_every >= 1, "eval_every", "at least 1"),
            (self.patience is None or self.patience > 0, "patience", "above 0"),
            (self.batch_tokens is None or self.batch_tokens >= 1, "batch_tokens", "at least 1"),
            (self.grad_accum >= 1, "grad_accum", "at least 1"),
            (self.max_steps is None or self.max_steps >= 1, "max_steps", "at least 1"),
            (self.ema is None or 0 < self.ema < 1, "ema", "above 0 and below 1"),
            (0 <= self.seed < 2**63, "seed", f"from 0 to {2**63 - 1}"),
            (self.dtype in TRAINING_DTYPES, "dtype", f"one of {', '.join(TRAINING_DTYPES)}"),
            (self.checkpoint_seconds >= 0, "checkpoint_seconds", "at least 0"),
        ]
        flags = {"checkpoint_seconds": "checkpoint-every"}
        return [
            f"--{flags.get(name, name).replace('_', '-')} must be {rule}, not {getattr(self, name)}"
            for good, name, rule in checks
            if not good
        ]


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
