"""A student that becomes useless is said to be so."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from sentcompress.commands.training import TrainingOptions
from sentcompress.methods.hpd import HPD
from sentcompress.training.health import SAMPLE, Health, Watch, diagnose, vanished_kernel
from sentcompress.training.settings import Settings

SETTINGS = Settings.of(HPD.recipe, TrainingOptions())
IDS = torch.arange(300).view(100, 3)


def watched(vectors: Tensor) -> Health | None:
    watch = Watch(lambda ids, mask: vectors)
    assert watch(IDS, torch.ones_like(IDS)) is vectors
    return watch.health()


def test_spread_vectors_are_healthy() -> None:
    found = watched(torch.randn(100, 16, generator=torch.Generator().manual_seed(0)))
    assert found is not None
    assert abs(found.mean_cosine) < 0.1
    assert found.effective_rank > 12
    assert not found.collapsed


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_one_vector_for_everything_is_collapse(noise: float) -> None:
    found = watched(torch.ones(100, 16) + noise * torch.randn(100, 16))
    assert found is not None
    assert found.collapsed
    assert found.mean_cosine == pytest.approx(1.0, abs=1e-6)


def test_vectors_on_a_line_are_collapse_though_their_cosines_differ() -> None:
    found = watched(torch.linspace(-1, 1, 100).unsqueeze(1) * torch.ones(100, 16))
    assert found is not None
    assert found.mean_cosine < 0.5
    assert found.collapsed


def test_too_few_vectors_say_nothing() -> None:
    assert watched(torch.ones(3, 16)) is None


def test_what_is_no_number_is_left_to_the_loss() -> None:
    assert watched(torch.full((100, 4), torch.nan)) is None


def test_one_vector_that_is_not_a_number_is_seen_though_it_is_not_kept() -> None:
    watch = Watch(lambda ids, mask: ids)
    watch(torch.ones(SAMPLE + 100, 4), torch.ones(1))
    assert watch.finite
    watch(torch.tensor([[1.0, torch.inf]]), torch.ones(1))
    assert not watch.finite


def test_vectors_whose_squares_overflow_have_not_collapsed() -> None:
    vectors = torch.randn(100, 16, generator=torch.Generator().manual_seed(0))
    found = watched(vectors * 1e30)
    assert found is not None
    assert not found.collapsed


def test_a_reason_is_the_same_for_as_long_as_it_lasts() -> None:
    def kind(cosine: float, **given: float) -> str:
        found = diagnose(Health(cosine, 1.2, 16), score=80.0, best=80.0, settings=SETTINGS, watched=given)
        assert found is not None
        return found.kind

    assert kind(0.999) == kind(0.995)
    assert kind(0.999) != kind(0.999, temperature=3.0)


def test_the_likely_cause_is_named() -> None:
    flat, fine = Health(0.999, 1.2, 384), Health(0.2, 60.0, 384)

    def found(health: Health = flat, score: float = 80.0, best: float = 80.0, **given: float) -> str | None:
        settings = replace(SETTINGS, **{k: v for k, v in given.items() if k in vars(SETTINGS)})
        diagnosis = diagnose(health, score=score, best=best, settings=settings, watched=given)
        return diagnosis.text if diagnosis else None

    assert found(fine) is None
    assert found(fine, score=70.0) is None
    assert "dropped from 80.00 to 40.00" in str(found(fine, score=40.0))
    assert "learning rate of 0.01" in str(found(lr=1e-2))
    assert "learning rate of 0.01" in str(found(lr=1e-2, kernel_x=0.001))
    assert "gamma" in str(found(kernel_x=0.999))
    assert "gamma" not in str(found(linear_x=80.0))
    assert "temperature of 3.00" in str(found(temperature=3.0))
    assert "batches of 4" in str(found(batch_size=4))


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_few_dimensions_that_are_all_in_use_are_no_collapse(dimension: int) -> None:
    vectors = torch.randn(100, dimension, generator=torch.Generator().manual_seed(0)) * torch.linspace(
        1, 0.5, dimension
    )
    found = watched(vectors)
    assert found is not None
    assert not found.collapsed
    line = watched(torch.linspace(-1, 1, 100).unsqueeze(1) * torch.ones(100, dimension))
    assert line is not None
    assert line.collapsed


@pytest.mark.parametrize(("batch_size", "cause"), [(1, "a batch of one sentence"), (8, "already matches its targets")])
def test_a_loss_without_a_gradient_is_told(batch_size: int, cause: str) -> None:
    settings = replace(SETTINGS, batch_size=batch_size)
    found = diagnose(Health(0.2, 60.0, 384), score=80.0, best=80.0, settings=settings, watched={}, still=True)
    assert found is not None
    assert "the loss has no gradient" in found.text
    assert cause in found.text


@pytest.mark.parametrize(
    ("watched", "parts"),
    [
        ({}, None),
        ({"temperature": 0.001}, None),
        ({"kernel_x": 0.3, "kernel_s": 0.02}, None),
        ({"linear_x": 0.0, "linear_s": -3.0}, None),
        ({"kernel_x": 0.001, "kernel_s": 0.3}, ["X is 1.0e-03 (kernel_x):"]),
        ({"kernel_x": 0.0, "kernel_s": 1e-5}, ["X is 0.0e+00 (kernel_x) and", "S is 1.0e-05 (kernel_s):"]),
    ],
)
def test_a_vanished_kernel_is_told_with_what_to_do(watched: dict[str, float], parts: list[str] | None) -> None:
    found = vanished_kernel(watched)
    if parts is None:
        assert found is None
        return
    assert found is not None
    for part in (*parts, "smaller gamma", "kernel=imq", "normalise=true"):
        assert part in found
