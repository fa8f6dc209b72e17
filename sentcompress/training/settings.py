"""The numbers that a training run goes by, after recipe and flags have been put together."""

from __future__ import annotations

from dataclasses import dataclass

from sentcompress.training.schedule import SCHEDULES


@dataclass(frozen=True)
class Settings:
    """See `sentcompress.methods.recipe.Recipe` for those that a recipe names.

    Attributes:
        warmup_ratio: warm-up as a share of all steps; overrides the other two when it is not None.
        batch_tokens: padding included, a batch holds no more tokens than this; None is `batch_size` x 64.
        max_steps: stop after so many steps, with the schedule shortened to match; None is no limit.
        checkpoint_seconds: time between checkpoints; it has no influence on the result.
    """

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
    max_steps: int | None = None
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    checkpoint_seconds: float = 60.0

    @property
    def token_budget(self) -> int:
        return self.batch_tokens or self.batch_size * 64

    def faults(self) -> list[str]:
        """What is wrong with the numbers, in words."""
        checks = [
            (self.lr > 0, f"--lr must be above 0, not {self.lr:g}"),
            (self.epochs >= 1, f"--epochs must be at least 1, not {self.epochs}"),
            (self.batch_size >= 1, f"--batch-size must be at least 1, not {self.batch_size}"),
            (self.schedule in SCHEDULES, f"--schedule must be one of {', '.join(SCHEDULES)}, not {self.schedule!r}"),
            (self.warmup_steps >= 0, f"--warmup-steps must not be negative, but is {self.warmup_steps}"),
            (self.weight_decay >= 0, f"--weight-decay must not be negative, but is {self.weight_decay:g}"),
            (self.clip >= 0, f"--clip must not be negative, but is {self.clip:g}"),
            (self.max_length >= 3, f"--max-length must be at least 3 tokens, not {self.max_length}"),
            (self.dropout is None or 0 <= self.dropout < 1, f"--dropout must be from 0 to below 1, not {self.dropout}"),
            (self.eval_every is None or self.eval_every >= 1, f"--eval-every must be at least 1, not {self.eval_every}"),
            (self.patience is None or self.patience > 0, f"--patience must be above 0, not {self.patience}"),
            (
                self.warmup_ratio is None or 0 <= self.warmup_ratio <= 1,
                f"--warmup-ratio must be from 0 to 1, not {self.warmup_ratio}",
            ),
            (self.batch_tokens is None or self.batch_tokens >= 1, f"--batch-tokens must be at least 1, not {self.batch_tokens}"),
            (self.max_steps is None or self.max_steps >= 1, f"--max-steps must be at least 1, not {self.max_steps}"),
            (self.dtype in ("auto", "float32", "bfloat16"), f"--dtype must be auto, float32 or bfloat16, not {self.dtype!r}"),
            (
                self.checkpoint_seconds >= 0,
                f"--checkpoint-every must not be negative, but is {self.checkpoint_seconds:g}",
            ),
        ]
        return [fault for good, fault in checks if not good]
