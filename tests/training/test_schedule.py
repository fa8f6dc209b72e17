"""The schedule of a run: how many steps it has, what is counted for that, and the learning rate of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sentcompress.commands.training import TrainingOptions
from sentcompress.methods import method_class
from sentcompress.methods.mse import MSE
from sentcompress.training.batches import BatchPlan, Rows
from sentcompress.training.run_state import Progress
from sentcompress.training.schedule import COUNTED_EPOCHS, Schedule, factor, warmup_steps
from sentcompress.training.settings import Settings


def settings_of(method: str = "hpd", **asked: object) -> Settings:
    return Settings.of(method_class(method).recipe, TrainingOptions(**asked))  # type: ignore[arg-type]


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


def test_of_very_many_epochs_only_the_first_ones_are_counted() -> None:
    lengths = np.random.default_rng(0).integers(1, 40, 50).astype(np.int32)
    plan = Counting(np.arange(50), lengths, batch_size=8, token_budget=100, seed=0)
    object.__setattr__(plan, "made", [])
    settings = Settings.of(MSE.recipe, TrainingOptions(epochs=10_000, max_steps=3))
    found = Schedule.of(settings, plan, Progress())
    assert plan.made == list(range(COUNTED_EPOCHS))
    counted = sum(len(BatchPlan.epoch(plan, number)) for number in range(COUNTED_EPOCHS))
    assert (found.total, found.all_steps) == (3, counted * 10_000 // COUNTED_EPOCHS)


def curve(kind: str, total: int = 10, warmup: int = 2) -> list[float]:
    return [factor(step, total=total, warmup=warmup, kind=kind) for step in range(total)]


def test_it_rises_in_a_line_and_falls_as_asked() -> None:
    assert curve("linear") == pytest.approx([0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125])
    assert curve("constant") == [0.5, *[1] * 9]
    cosine = curve("cosine")
    assert cosine[2] == 1
    assert cosine[6] == pytest.approx(0.5)
    assert cosine == sorted(cosine[:2]) + sorted(cosine[2:], reverse=True)


def test_a_warm_up_counted_in_steps_never_takes_more_than_a_tenth() -> None:
    assert warmup_steps(settings_of(), total=70_000, per_epoch=23_333) == 1000
    assert warmup_steps(settings_of(), total=50, per_epoch=17) == 5


def test_ckd_warms_up_for_a_tenth_of_an_epoch() -> None:
    assert warmup_steps(settings_of("ckd"), total=20_000, per_epoch=1000) == 100


def test_a_ratio_is_taken_as_it_is() -> None:
    assert warmup_steps(settings_of(warmup_ratio=0.5), total=100, per_epoch=10) == 50
    assert warmup_steps(settings_of("ckd", warmup_steps=7), total=100, per_epoch=100) == 7


@pytest.mark.parametrize(("asked", "seconds"), [({"warmup_steps": 300}, 6.0), ({"warmup_ratio": 0.5}, 30.0)])
def test_a_warm_up_ends_in_time(asked: dict[str, float], seconds: float) -> None:
    """Of one minute, though all epochs have many more steps than fit into it; the first dev score does not count."""
    settings = settings_of(max_minutes=1.0, epochs=1000, lr=1.0, schedule="constant", **asked)
    progress = Progress(scoring_seconds=10.0)
    schedule = Schedule.of(settings, BatchPlan(np.arange(512), np.full(512, 9, np.int32), 4, 1000, 0), progress)
    assert schedule.warmup >= 300
    found = []
    for step in range(5):
        progress.step, progress.seconds = step, step * seconds / 4
        found.append(schedule.rate())
    assert found == pytest.approx([1 / schedule.warmup, 0.25, 0.5, 0.75, 1.0])
    # Where more steps fit, they count.
    progress.step, progress.seconds = schedule.warmup // 2 - 1, 1e-3
    assert schedule.rate() == pytest.approx(0.5, rel=1e-3)
