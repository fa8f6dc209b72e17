"""The settings of a training run, combined from recipe and options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from sentcompress.commands.training import BY_LENGTH, TrainingOptions
from sentcompress.methods.hyperparameters import Hyperparameters

# Tokens per sentence in the default token limit of a batch; longer sentences make smaller batches.
TOKENS_A_ROW = 64
# The source of a value given as an option of the command, on the command line or in a recipe file.
OPTION = "command option"


def in_place(
    recipe: Hyperparameters, asked: TrainingOptions, filled: Mapping[str, str] = MappingProxyType({})
) -> Hyperparameters:
    """The recipe with the values of the options in their places.

    Args:
        filled: the sources of the options that the command filled in itself, by name.
    """
    given = {name: value for name, value in vars(asked).items() if name in recipe.values()}
    sources = {**dict.fromkeys(given, OPTION), **filled}
    if asked.betas is not None:
        given["betas"] = " ".join(map(str, asked.betas))
    if asked.warmup_steps is not None:
        given["warmup_epochs"], sources["warmup_epochs"] = 0, sources["warmup_steps"]
    return recipe.overridden(given, sources)


@dataclass(frozen=True)
class Settings:
    """The numbers of one run; see `methods.hyperparameters.Hyperparameters` and `commands.training.TrainingOptions`."""

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
    warmup_ratio: float | None
    batch_tokens: int | None
    batches: str
    grad_accum: int
    max_steps: int | None
    max_minutes: float | None
    ema: float | None
    weight_format: str | None
    seed: int
    device: str
    dtype: str
    checkpoint_seconds: float

    @classmethod
    def of(cls, recipe: Hyperparameters, asked: TrainingOptions) -> Settings:
        """Recipe and options put together."""
        own = {field.name: getattr(asked, field.name) for field in fields(cls) if hasattr(asked, field.name)}
        values: dict[str, Any] = {**own, **in_place(recipe, asked).values()}
        first, second = (float(beta) for beta in str(values.pop("betas")).split())
        return cls(**values, betas=(first, second))

    @property
    def by_length(self) -> bool:
        """Whether a batch holds rows of similar length."""
        return self.batches == BY_LENGTH

    def token_budget(self, contrastive: bool = False) -> int:
        """The tokens that a batch may hold, padding included.

        If its rows are each other's negatives, or batches are random, there is no limit unless `batch_tokens` sets one.
        """
        whole = contrastive or not self.by_length
        return self.batch_tokens or self.batch_size * (self.max_length if whole else min(self.max_length, TOKENS_A_ROW))

    def that_matter(self) -> dict[str, Any]:
        """The numbers that the result depends on: not the device, nor how often a checkpoint is written."""
        # The request has `batches` of its own where it is not the default.
        others = ("device", "checkpoint_seconds", "batches")
        kept = {name: value for name, value in vars(self).items() if name not in others}
        return {**kept, "betas": list(self.betas)}
