"""When a training ends, which steps are followed by a dev score, and the learning rate of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sentcompress.training.batches import BatchPlan
from sentcompress.training.run_state import Progress
from sentcompress.training.settings import Settings

# Dev scores of a run with a time limit: this many, or fewer if they would take more than this share of the time. The
# last one is at the end.
DEV_SCORES = 4
SCORING = 0.15
# A warm-up that a recipe counts in steps was meant for millions of sentences; a small run must not end inside it.
LONGEST_WARMUP = 0.1
# Epochs whose steps are counted; further ones count as many on average. Counting can take a plan of all batches.
COUNTED_EPOCHS = 100


@dataclass
class Schedule:
    """The schedule of a run, by the steps and the time that its progress counts.

    Attributes:
        settings: the limits, `eval_every`, and the numbers of the learning rate.
        progress: how far the run is.
        all_steps: the steps of all epochs, estimated from the first one if there is a time limit, otherwise from the
            first COUNTED_EPOCHS.
        total: steps at most.
        warmup: steps in which the learning rate rises.
        eval_every: steps between two dev scores; None for DEV_SCORES or fewer in the time limit.
        used: the share of the time limit that had been used before the step.
    """

    settings: Settings
    progress: Progress
    all_steps: int
    total: int
    warmup: int
    eval_every: int | None
    used: float = 0.0

    @classmethod
    def of(cls, settings: Settings, plan: BatchPlan, progress: Progress) -> Schedule:
        """The schedule of a run over the batches of a plan."""
        counted = range(1 if settings.max_minutes else min(settings.epochs, COUNTED_EPOCHS))
        epoch_steps = [steps_of(plan, epoch, settings.grad_accum) for epoch in counted]
        all_steps = sum(epoch_steps) * settings.epochs // len(counted)
        total = min(all_steps, settings.max_steps or all_steps)
        warmup = warmup_steps(settings, total, all_steps / settings.epochs)
        eval_every = settings.eval_every or (None if settings.max_minutes else math.ceil(epoch_steps[0] / 4))
        return cls(settings, progress, all_steps, total, warmup, eval_every)

    @property
    def share_of_epochs(self) -> float:
        """The share of all epochs that `total` steps are."""
        return self.total / self.all_steps

    def time_used(self) -> float:
        """The share of `max_minutes` that training and dev scores have taken, also before it was resumed."""
        limit = self.settings.max_minutes
        return self.progress.all_seconds / (60 * limit) if limit else 0.0

    def seconds_left(self) -> float | None:
        """The rest of `max_minutes`, in seconds; None without this limit."""
        limit = self.settings.max_minutes
        return 60 * limit * max(0.0, 1 - self.time_used()) if limit else None

    def rate(self) -> float:
        """The learning rate of the next step; with a time limit, a rate that decays is zero when the time is up."""
        step, kind = self.progress.step, self.settings.schedule
        by_step = factor(step, total=self.total, warmup=self.warmup, kind=kind)
        by_time = factor(min(self.time_used(), 1.0), total=1, warmup=0, kind=kind)
        if step < self.warmup:
            by_step = max(by_step, self._warmed_by_time())
        return self.settings.lr * min(by_step, by_time)

    def _warmed_by_time(self) -> float:
        """The share of the peak that the warm-up of a run with a time limit has reached at least; 0 without a limit.

        The steps of all epochs, which limit a warm-up counted in steps, can be many more than the time is enough for.
        """
        limit, ratio = self.settings.max_minutes, self.settings.warmup_ratio
        longest = 60 * (limit or math.inf) * (LONGEST_WARMUP if ratio is None else ratio)
        return min(1.0, self.progress.seconds / longest)

    def is_last(self) -> bool:
        """Whether no step follows the one just done, unless its dev score ends the training earlier."""
        return self.progress.step == self.total or self.time_used() >= 1

    def is_scored(self) -> bool:
        """Whether the step just done is followed by a dev score."""
        if self.is_last():
            return True
        if self.eval_every is not None:
            return self.progress.step % self.eval_every == 0
        count = self._dev_scores()
        return int(count * self.time_used()) > int(count * self.used)

    def _dev_scores(self) -> int:
        """The number of dev scores that fit into the time limit, judging by the time of those so far."""
        progress, limit = self.progress, self.settings.max_minutes
        if not limit or not progress.scoring_seconds:
            return DEV_SCORES
        affordable = SCORING * 60 * limit * progress.dev_scores / progress.scoring_seconds
        return max(1, min(DEV_SCORES, int(affordable)))

    def begin_step(self) -> None:
        """Note the time before a step, so that the last dev score does not count towards the time of the next one."""
        self.used = self.time_used()


def steps_of(plan: BatchPlan, epoch: int, together: int) -> int:
    """The steps of an epoch, each of `together` batches."""
    return -(-plan.steps(epoch) // together)


def warmup_steps(settings: Settings, total: int, per_epoch: float) -> int:
    """The number of warm-up steps among `total` steps; `per_epoch` is the number of steps of one epoch."""
    if settings.warmup_ratio is not None:
        return round(settings.warmup_ratio * total)
    asked = max(settings.warmup_steps, round(settings.warmup_epochs * per_epoch))
    return min(asked, math.ceil(LONGEST_WARMUP * total))


def factor(step: float, *, total: int, warmup: int, kind: str) -> float:
    """The share of the peak learning rate in step `step` (from 0): linear warm-up, then the decay to zero."""
    if step < warmup:
        return (step + 1) / warmup
    if kind == "constant":
        return 1.0
    progress = (step - warmup) / max(1, total - warmup)
    return 1.0 - progress if kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * progress))
