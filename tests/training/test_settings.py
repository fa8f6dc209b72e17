"""Numbers of a run that follow from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distilling import make_work

from sentcompress.commands.parsing import build, checked
from sentcompress.commands.spelling import words
from sentcompress.commands.training import TrainingOptions
from sentcompress.methods import method_class
from sentcompress.methods.hyperparameters import Number
from sentcompress.models.token_batches import TokenRows
from sentcompress.stages import distill, finetune
from sentcompress.training.settings import Settings
from sentcompress.training.triplets import TripletData


def settings(method: str = "hpd", **asked: object) -> Settings:
    return Settings.of(method_class(method).recipe, TrainingOptions(**asked))  # type: ignore[arg-type]


def test_a_batch_of_negatives_is_cut_only_where_that_is_asked_for() -> None:
    found = settings("ckd", batch_size=100, max_length=200)
    assert found.token_budget() == 6_400
    assert found.token_budget(contrastive=True) == 20_000
    asked = settings("ckd", batch_size=100, max_length=200, batch_tokens=1000)
    assert asked.token_budget() == asked.token_budget(contrastive=True) == 1000
    assert settings("ckd", batch_size=100, max_length=32).token_budget() == 3_200


@pytest.mark.parametrize("budget", [None, 400])
def test_triplets_of_long_texts_are_as_many_as_asked(budget: int | None) -> None:
    """One anchor, one positive and 8 negatives of up to 200 tokens, 16 triplets a batch."""

    lengths = np.random.default_rng(0).integers(5, 200, size=1000).astype(np.int32)
    tokens = TokenRows.joined(np.zeros(int(lengths.sum()), np.int32), lengths)
    triplets = np.random.default_rng(1).integers(0, 1000, size=(96, 10))
    numbers = {"batch_size": 16, "max_length": 200, **({"batch_tokens": budget} if budget else {})}
    plan = TripletData(triplets, tokens, 0).plan(np.arange(96), settings(**numbers))
    sizes = [len(batch) for batch in plan.epoch(0)]
    assert sizes == ([16] * 6 if budget is None else [1] * 96)


@pytest.mark.parametrize(("method", "whole"), [("ckd", True), ("lrn-kd", False)])
def test_long_sentences_cost_a_contrastive_method_no_negatives(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, method: str, whole: bool
) -> None:
    """Sentences of 24 tokens in batches of 10, where 12 tokens a row would leave 5 rows a batch."""
    work = make_work(tmp_path / "work", tiny_model, [f"a man {'plays ' * 20}{n % 7}" for n in range(22)])
    monkeypatch.setattr("sentcompress.training.settings.TOKENS_A_ROW", 12)
    numbers: dict[str, Any] = {"batch_size": 10, "epochs": 1, "max_length": 30, "dtype": "float32", "device": "cpu"}
    student = distill.run(distill.Params(method=method, student="teacher:1", **numbers), work)
    rows = student.facts["training_rows"]
    assert student.facts["sentences_seen"] == rows
    assert student.facts["steps"] == -(-rows // (10 if whole else 5))


def test_all_faults_are_named_at_once() -> None:
    asked = distill.Params(lr=-1.0, epochs=0, schedule="cosin", dropout=1.0, warmup_ratio=2.0, dtype="float8", ema=1.0)
    faults = [fault.split()[0] for fault in asked.all_faults()]
    assert faults[:7] == ["`lr`", "`epochs`", "`warmup_ratio`", "`schedule`", "`dropout`", "`ema`", "`dtype`"]
    infinite = distill.Params(lr=float("inf"), weight_decay=float("inf"), seed=2**63).all_faults()
    assert [fault.split()[0] for fault in infinite][:3] == ["`lr`", "`weight_decay`", "`seed`"]
    assert distill.Params(lr=float("nan")).all_faults()[0] == "`lr` must be above 0, not nan"


def test_random_batches_are_in_the_request_and_are_not_cut_by_length(tmp_path: Path, tiny_model: Path) -> None:
    plain, random = settings("lrn-kd", batch_size=100), settings("lrn-kd", batch_size=100, batches="random")
    assert plain.that_matter() == random.that_matter()
    assert (plain.token_budget(), random.token_budget()) == (6_400, 25_600)
    assert settings("lrn-kd", batches="random", batch_tokens=500).token_budget() == 500
    work = make_work(tmp_path / "work", tiny_model, [f"a man {'plays ' * (n % 9)}{n}" for n in range(60)])
    numbers: dict[str, Any] = {"max_steps": 3, "dtype": "float32", "device": "cpu", "student": "teacher:1"}
    students = {
        batches: distill.run(distill.Params(batches=batches, batch_size=8, **numbers), work)
        for batches in ("by-length", "random")
    }
    assert "batches" not in students["by-length"].parameters
    assert students["random"].parameters["batches"] == "random"
    assert students["random"].name != students["by-length"].name
    assert distill.Params(batches="random").suffix() == "-batches-random"
    assert students["random"].facts["tokens_seen"] > students["by-length"].facts["tokens_seen"]
    assert distill.Params(batches="sorted").all_faults() == ["`batches` sorted: choose one of: by-length, random"]


def test_betas_are_the_methods_or_those_asked_for(tmp_path: Path, tiny_model: Path) -> None:
    assert settings("ckd").betas == (0.9, 0.98)
    assert settings("ckd", betas=(0.8, 0.999)).betas == (0.8, 0.999)
    asked = checked(distill.Params, {"method": "ckd", "betas": "0.8, 0.95"})
    assert asked.betas == (0.8, 0.95)
    assert asked.settings().betas == (0.8, 0.95)
    assert asked.hyperparameters().betas == Number("0.8 0.95", "command option; default: 0.9 0.98")
    same = checked(distill.Params, {"method": "ckd", "betas": "0.9, 0.98"})
    assert same.hyperparameters().betas == distill.Params(method="ckd").hyperparameters().betas
    assert words(asked) == ["distill", "--method", "ckd", "--betas", "0.8,0.95"]
    assert build(distill.Params, {"betas": [0.8, 0.95]})[0].betas == (0.8, 0.95)
    work = make_work(tmp_path / "work", tiny_model, [f"a man plays {n}" for n in range(22)])
    numbers: dict[str, Any] = {"max_steps": 1, "dtype": "float32", "device": "cpu", "student": "teacher:1"}
    student = distill.run(distill.Params(betas=(0.8, 0.95), **numbers), work)
    assert student.parameters["betas"] == [0.8, 0.95]
    assert distill.Params(betas=(0.8, 0.95)).suffix() == "-betas-0.8-0.95"


@pytest.mark.parametrize(
    ("betas", "fault"),
    [
        ((0.9,), "`betas` must be two numbers, such as 0.9,0.98, not 1"),
        ((0.9, 0.9, 0.9), "`betas` must be two numbers, such as 0.9,0.98, not 3"),
        ((), "`betas` must be two numbers, such as 0.9,0.98, not 0"),
        ((0.9, 1.0), "`betas` must be at least 0 and below 1, not 1.0"),
        ((-0.1, 0.9), "`betas` must be at least 0 and below 1, not -0.1"),
        ((0.9, float("nan")), "`betas` must be at least 0 and below 1, not nan"),
    ],
)
def test_betas_that_cannot_be(betas: tuple[float, ...], fault: str) -> None:
    for params in (distill.Params(betas=betas), finetune.Params(betas=betas)):
        assert params.all_faults() == [fault]


def test_the_warm_up_is_given_in_one_way() -> None:
    for params in (distill.Params(warmup_steps=9, warmup_ratio=0.1), finetune.Params(warmup_steps=9, warmup_ratio=0.1)):
        assert params.all_faults() == ["`warmup_steps` and `warmup_ratio` both set the warm-up; give one of them"]


def test_device_and_checkpoints_do_not_matter_to_the_result() -> None:
    one, two = settings(device="cpu", checkpoint_seconds=1.0), settings(device="cuda")
    assert one.that_matter() == two.that_matter()
    assert settings(seed=1).that_matter() != one.that_matter()
