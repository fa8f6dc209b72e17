"""The numbers that a training run goes by, after recipe and flags have been put together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sentcompress.commands.shared import Training
from sentcompress.methods.recipe import Recipe

# What a sentence may take of a batch on average, unless told otherwise: longer ones make smaller batches.
TOKENS_A_ROW = 64


def in_place(recipe: Recipe, asked: Training) -> Recipe:
    """The recipe with what was asked for, and who asked, in its place."""
    given = {name: value for name, value in vars(asked).items() if name in recipe.values()}
    if asked.warmup_steps is not None:
        given["warmup_epochs"] = 0
    return recipe.overridden(given, "asked for")


@dataclass(frozen=True)
class Settings:
    """See `sentcompress.methods.recipe.Recipe` and `sentcompress.commands.shared.Training` for each number."""

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
    def of(cls, recipe: Recipe, asked: Training) -> Settings:
        """Recipe and options put together."""
        own = {field.name: getattr(asked, field.name) for field in fields(cls) if hasattr(asked, field.name)}
        values: dict[str, Any] = {**own, **in_place(recipe, asked).values()}
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
        kept = {name: value for name, value in vars(self).items() if name not in ("device", "checkpoint_seconds")}
        return {**kept, "betas": list(self.betas)}
