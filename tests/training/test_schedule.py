"""The learning rate of each step."""

from __future__ import annotations

from typing import Any

import pytest

from sentcompress.commands.shared import Training
from sentcompress.methods import method_class
from sentcompress.training.schedule import factor, warmup_steps
from sentcompress.training.settings import Settings


def settings(method: str = "hpd", **asked: object) -> Settings:
    return Settings.of(method_class(method).recipe, Training(**asked))  # type: ignore[arg-type]


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
    assert warmup_steps(settings(), total=70_000, per_epoch=23_333) == 1000
    assert warmup_steps(settings(), total=50, per_epoch=17) == 5


def test_ckd_warms_up_for_a_tenth_of_an_epoch() -> None:
    assert warmup_steps(settings("ckd"), total=20_000, per_epoch=1000) == 100


def test_a_ratio_is_taken_as_it_is() -> None:
    assert warmup_steps(settings(warmup_ratio=0.5), total=100, per_epoch=10) == 50
    assert warmup_steps(settings("ckd", warmup_steps=7), total=100, per_epoch=100) == 7


def faults(**asked: Any) -> list[str]:
    return [fault.split()[0] for fault in Training(**asked).all_faults()]


def test_all_faults_are_named_at_once() -> None:
    wrong = {"lr": -1.0, "epochs": 0, "schedule": "cosin", "warmup_ratio": 2.0, "dropout": 1.0, "dtype": "float8"}
    assert sorted(faults(**wrong)) == sorted(f"`{name}`" for name in wrong)
    assert faults() == []
    assert faults(lr=float("nan")) == ["`lr`"]
    assert faults(lr=float("inf"), weight_decay=float("inf"), seed=2**63) == ["`lr`", "`weight_decay`", "`seed`"]
    assert faults(ema=0.0) == faults(ema=1.0) == ["`ema`"]


def test_device_and_checkpoints_do_not_matter_to_the_result() -> None:
    one, two = settings(device="cpu", checkpoint_seconds=1.0), settings(device="cuda")
    assert one.that_matter() == two.that_matter()
    assert settings(seed=1).that_matter() != one.that_matter()
