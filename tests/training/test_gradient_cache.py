"""Gradients of several batches taken together are those of the one large batch."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sentcompress.training.batches import Batch
from sentcompress.training.gradient_cache import backward_together

ROWS, WIDTH = 12, 5


def batch(rows: slice, inputs: Tensor, targets: Tensor) -> Batch:
    return Batch.of(inputs[rows], torch.ones_like(inputs[rows]), {"teacher": targets[rows]}, len(inputs[rows]))


def info_nce(views: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every row's rivals are all other rows: nothing that a sum over parts could give."""
    student, teacher = functional.normalize(views["student"]), functional.normalize(views["teacher"])
    return {"contrastive": functional.cross_entropy(10 * student @ teacher.T, torch.arange(len(student)))}


@pytest.mark.parametrize("cuts", [(0, 6, 12), (0, 4, 8, 12), (0, 5, 12)])
def test_gradients_equal_those_of_the_large_batch(cuts: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    inputs, targets = torch.randn(ROWS, WIDTH, generator=generator), torch.randn(ROWS, 3, generator=generator)
    model = nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 3))

    def compute(part: Batch, number: int) -> dict[str, Tensor]:
        return {"student": model(part.input_ids), "teacher": part.targets}

    whole = info_nce(compute(batch(slice(0, ROWS), inputs, targets), 0))["contrastive"]
    whole.backward()
    expected = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()

    parts = [batch(slice(start, end), inputs, targets) for start, end in pairwise(cuts)]
    terms, views = backward_together(parts, compute, info_nce)
    assert terms["contrastive"].item() == pytest.approx(whole.item(), rel=1e-6)
    assert views["student"].shape == (ROWS, 3)
    assert not views["student"].requires_grad
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6)


def test_dropout_is_the_same_in_both_passes() -> None:
    """The second pass must see the vectors that the loss was taken of, or its gradients belong to others."""
    inputs, targets = torch.randn(ROWS, WIDTH), torch.randn(ROWS, 3)
    model = nn.Sequential(nn.Linear(WIDTH, 3), nn.Dropout(0.5))
    seen: dict[int, list[Tensor]] = {}

    def compute(part: Batch, number: int) -> dict[str, Tensor]:
        torch.manual_seed(number)
        found = model(part.input_ids)
        seen.setdefault(number, []).append(found.detach())
        return {"student": found, "teacher": part.targets}

    backward_together([batch(slice(0, 6), inputs, targets), batch(slice(6, 12), inputs, targets)], compute, info_nce)
    assert sorted(seen) == [0, 1]
    assert all(torch.equal(first, second) for first, second in seen.values())
