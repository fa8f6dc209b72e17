"""Gradients of several batches taken together are those of the one large batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sentcompress.ranks.alone import GatheredViews, Ranks
from sentcompress.training.batches import Batch
from sentcompress.training.gradient_cache import backward_together, sum_gradients

ROWS, WIDTH = 12, 5


def batch(rows: slice, inputs: Tensor, targets: Tensor) -> Batch:
    return Batch.of(inputs[rows], torch.ones_like(inputs[rows]), {"teacher": targets[rows]}, len(inputs[rows]))


def info_nce(views: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every row's rivals are all other rows: nothing that a sum over parts could give."""
    student, teacher = functional.normalize(views["student"]), functional.normalize(views["teacher"])
    return {"contrastive": functional.cross_entropy(10 * student @ teacher.T, torch.arange(len(student)))}


@pytest.mark.parametrize("cuts", [(0, 6, 12), (0, 4, 8, 12), (0, 5, 12)])
def test_gradients_equal_those_of_the_large_batch(cuts: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    inputs, targets = torch.randn(ROWS, WIDTH, dtype=torch.float64), torch.randn(ROWS, 3, dtype=torch.float64)
    model = nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 3)).double()

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
        assert torch.allclose(parameter.grad, gradient, atol=1e-12)


class Threads(Ranks):
    """Ranks that are threads of this process."""

    def __init__(self, number: int, barrier: Barrier, given: dict[int, object]) -> None:
        self.number, self.count = number, barrier.parties
        self._barrier, self._given = barrier, given

    def collect(self, value: Any) -> list[Any]:
        self._given[self.number] = value
        self._barrier.wait()
        found = [self._given[rank] for rank in range(self.count)]
        self._barrier.wait()
        return found

    def gather(self, views: Mapping[str, Tensor], lengths: Mapping[str, Sequence[int]]) -> GatheredViews:
        parts = self.collect(views)
        starts = {name: sum(len(part[name]) for part in parts[: self.number]) for name in views}
        own = {name: slice(starts[name], starts[name] + len(view)) for name, view in views.items()}
        return GatheredViews({name: torch.cat([part[name] for part in parts]) for name in views}, own)

    def add(self, tensors: Sequence[Tensor]) -> None:
        by_rank = self.collect([tensor.clone() for tensor in tensors])
        for tensor, parts in zip(tensors, zip(*by_rank, strict=True), strict=True):
            tensor.copy_(torch.stack(parts).sum(dim=0))


@pytest.mark.parametrize("together", [1, 2])
def test_ranks_have_the_gradients_of_one_process(together: int) -> None:
    """Of the encoder, where each rank adds its part, and of the method, which every rank computes as a whole."""
    torch.manual_seed(0)
    inputs, targets = torch.randn(ROWS, WIDTH, dtype=torch.float64), torch.randn(ROWS, 3, dtype=torch.float64)
    encoder, method = nn.Linear(WIDTH, 4).double(), nn.Linear(4, 3).double()

    def loss(encoder: nn.Module, method: nn.Module, views: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return info_nce({"student": method(views["student"]), "teacher": views["teacher"]})

    expected = [copy.deepcopy(module) for module in (encoder, method)]
    whole = {"student": expected[0](inputs), "teacher": targets}
    loss(*expected, whole)["contrastive"].backward()
    size = ROWS // together
    barrier, given = Barrier(3, timeout=600), dict[int, object]()

    def of_rank(number: int) -> tuple[list[nn.Module], Mapping[str, Tensor]]:
        modules = [copy.deepcopy(module) for module in (encoder, method)]
        ranks = Threads(number, barrier, given)
        cuts = [slice(start + size * number // 3, start + size * (number + 1) // 3) for start in range(0, ROWS, size)]
        parts = [batch(cut, inputs, targets) for cut in cuts]

        def compute(part: Batch, number: int) -> dict[str, Tensor]:
            return {"student": modules[0](part.input_ids), "teacher": part.targets}

        _, views = backward_together(parts, compute, partial(loss, *modules), ranks)
        sum_gradients(*modules, ranks)
        return modules, views

    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(of_rank, range(3)))
    for modules, views in found:
        # Rows come in the order in which one process has them, so that queues are the same.
        assert torch.equal(views["teacher"], targets)
        for module, other in zip(modules, expected, strict=True):
            for parameter, wanted in zip(module.parameters(), other.parameters(), strict=True):
                assert torch.allclose(parameter.grad, wanted.grad, atol=1e-12)
        for module, other in zip(modules, found[0][0], strict=True):
            for parameter, first in zip(module.parameters(), other.parameters(), strict=True):
                assert torch.equal(parameter.grad, first.grad)


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
