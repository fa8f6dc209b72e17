"""The schedule of a run: how many steps it has, and what is counted for that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sentcompress.commands.training import TrainingOptions
from sentcompress.methods.mse import MSE
from sentcompress.training.batches import BatchPlan, Rows
from sentcompress.training.run_state import Progress
from sentcompress.training.schedule import Schedule
from sentcompress.training.settings import Settings


class Counting(BatchPlan):
    """A plan of batches that have to be made to be counted, and notes for which epochs they were."""

    made: list[int]

    def epoch(self, number: int) -> list[Rows]:
        self.made.append(number)
        return super().epoch(number)


def test_with_a_time_limit_epochs_are_not_counted_before_it_begins() -> None:
    lengths = np.random.default_rng(0).integers(1, 40, 500).astype(np.int32)
    plan = Counting(np.arange(500), lengths, batch_size=8, token_budget=100, seed=0)
    object.__setattr__(plan, "made", [])
    settings = Settings.of(MSE.recipe, TrainingOptions(epochs=5))
    whole = Schedule.of(settings, plan, Progress())
    assert plan.made == [0, 1, 2, 3, 4]
    assert whole.total == sum(len(BatchPlan.epoch(plan, number)) for number in range(5))
    plan.made.clear()
    limited = Schedule.of(replace(settings, max_minutes=1.0, epochs=100_000), plan, Progress())
    assert plan.made == [0]
    assert limited.total == 100_000 * len(BatchPlan.epoch(plan, 0))
    assert limited.share_of_epochs == 1
