"""Numbers of a run that follow from others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distilling import make_work

from sentcompress.commands.shared import Training
from sentcompress.methods import method_class
from sentcompress.stages import distill
from sentcompress.training.settings import Settings
from sentcompress.training.token_cache import TokenCache
from sentcompress.training.triplets import TripletData


def settings(**numbers: int) -> Settings:
    return Settings.of(method_class("ckd").recipe, Training(**numbers))  # type: ignore[arg-type]


def test_a_batch_of_negatives_is_cut_only_where_that_is_asked_for() -> None:
    found = settings(batch_size=100, max_length=200)
    assert found.token_budget() == 6_400
    assert found.token_budget(contrastive=True) == 20_000
    asked = settings(batch_size=100, max_length=200, batch_tokens=1000)
    assert asked.token_budget() == asked.token_budget(contrastive=True) == 1000
    assert settings(batch_size=100, max_length=32).token_budget() == 3_200


@pytest.mark.parametrize("tokens", [None, 400])
def test_triplets_of_long_texts_are_as_many_as_asked(tmp_path: Path, tokens: int | None) -> None:
    """One anchor, one positive and 8 negatives of up to 200 tokens, 16 triplets a batch."""

    class Lengths(TokenCache):
        def __init__(self) -> None:
            self.lengths = np.random.default_rng(0).integers(5, 200, size=1000).astype(np.int32)

    triplets = np.random.default_rng(1).integers(0, 1000, size=(96, 10))
    numbers = {"batch_size": 16, "max_length": 200, **({"batch_tokens": tokens} if tokens else {})}
    plan = TripletData(triplets, Lengths(), 0).plan(np.arange(96), settings(**numbers))
    sizes = [len(batch) for batch in plan.epoch(0)]
    assert sizes == ([16] * 6 if tokens is None else [1] * 96)


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
