"""HSIC against its definition, and what goes wrong with it in practice."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gradients import differences

from sentcompress.methods.hsic import KERNELS, hsic, kernel, mean_off_diagonal, squared_distances

random = np.random.default_rng(0)
X, S = random.normal(size=(6, 4)), random.normal(size=(6, 3))


def gram(vectors: np.ndarray, name: str, gamma: float) -> np.ndarray:
    out = np.zeros((len(vectors), len(vectors)))
    for i, a in enumerate(vectors):
        for j, b in enumerate(vectors):
            square = float(((a - b) ** 2).sum())
            out[i, j] = {
                "rbf": math.exp(-gamma * square),
                "imq": 1 / math.sqrt(gamma + square),
                "linear": float(a @ b),
            }[name]
    return out


def equation(x: np.ndarray, s: np.ndarray, name: str, gamma: float, below: int) -> float:
    n = len(x)
    centring = np.eye(n) - np.ones((n, n)) / n
    return float(np.trace(gram(x, name, gamma) @ centring @ gram(s, name, gamma) @ centring)) / below**2


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("divisor", "below"), [("n-1", 5), ("n", 6)])
def test_hsic_and_its_gradients_are_the_definition(name: str, divisor: str, below: int) -> None:
    x, s = torch.tensor(X, requires_grad=True), torch.tensor(S, requires_grad=True)
    value = hsic(kernel(x, name, 0.3), kernel(s, name, 0.3), divisor)
    value.backward()
    assert float(value) == pytest.approx(equation(X, S, name, 0.3, below), rel=1e-9)
    assert x.grad is not None
    assert s.grad is not None
    by_x = differences(lambda moved: equation(moved, S, name, 0.3, below), X)
    by_s = differences(lambda moved: equation(X, moved, name, 0.3, below), S)
    np.testing.assert_allclose(x.grad.numpy(), by_x, atol=1e-8)
    np.testing.assert_allclose(s.grad.numpy(), by_s, atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_near_zero_for_independent_and_positive_for_dependent_samples(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x, noise = torch.randn(800, 3, generator=generator), torch.randn(800, 3, generator=generator)
    dependent = x.square() + x if name != "linear" else x + 0.3 * noise
    by_chance = float(hsic(kernel(x, name, 0.5), kernel(noise, name, 0.5)))
    shared = float(hsic(kernel(x, name, 0.5), kernel(dependent, name, 0.5)))
    assert 0 <= by_chance < 0.1 * shared


def test_it_falls_towards_zero_with_more_independent_samples() -> None:
    values = []
    for count in (50, 200, 800):
        generator = torch.Generator().manual_seed(1)
        x, s = torch.randn(count, 2, generator=generator), torch.randn(count, 2, generator=generator)
        values.append(float(hsic(kernel(x, "rbf", 0.5), kernel(s, "rbf", 0.5))))
    assert values[0] > values[1] > values[2] > 0


def test_a_constant_shares_nothing() -> None:
    assert float(hsic(kernel(torch.randn(8, 3), "rbf", 0.5), kernel(torch.ones(8, 5), "rbf", 0.5))) == 0


@pytest.mark.parametrize("divisor", ["n-1", "n"])
def test_one_row_is_zero_and_not_a_division_by_zero(divisor: str) -> None:
    one = torch.randn(1, 4, requires_grad=True)
    value = hsic(kernel(one, "rbf", 0.5), kernel(torch.randn(1, 3), "rbf", 0.5), divisor)
    value.backward()
    assert float(value) == 0
    assert one.grad is not None
    assert bool(one.grad.isfinite().all())
    assert mean_off_diagonal(kernel(one, "rbf", 0.5)) is None


@pytest.mark.parametrize("name", KERNELS)
def test_float32_under_autocast(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x, s = 3 * torch.randn(32, 16, generator=generator), torch.randn(32, 8, generator=generator)
    plain = hsic(kernel(x, name, 0.01), kernel(s, name, 0.01))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        values = kernel(x, name, 0.01)
        under = hsic(values, kernel(s, name, 0.01))
        halved = kernel(x.bfloat16(), name, 0.01)
    assert values.dtype == under.dtype == halved.dtype == torch.float32
    assert float(under) == float(plain)


def test_squared_distances_keep_their_digits_far_from_the_origin_and_never_fall_below_zero() -> None:
    offsets = random.normal(size=(20, 8)) * 1e-2
    distances = squared_distances(torch.tensor(offsets + 100, dtype=torch.float32))
    stored = (offsets + 100).astype(np.float32).astype(np.float64)
    wanted = ((stored[:, None] - stored[None]) ** 2).sum(-1)
    assert float(distances.min()) >= 0
    np.testing.assert_allclose(distances.numpy(), wanted, atol=2e-6)
    same = squared_distances(torch.full((5, 7), 3.3))
    assert torch.equal(same, torch.zeros(5, 5))


def test_rows_that_are_next_to_alike_are_not_a_negative_distance_apart() -> None:
    """The product form of |a - b|^2 loses digits, more of them the longer the rows are."""
    rows = 5 * torch.randn(64, 32, generator=torch.Generator().manual_seed(0))
    rows[1:33] = rows[0] * (1 + 1e-7 * torch.randn(32, 1, generator=torch.Generator().manual_seed(1)))
    assert float(squared_distances(rows).min()) == 0


def test_the_mean_of_the_kernel_leaves_the_diagonal_out() -> None:
    values = gram(X, "rbf", 0.3)
    wanted = (values.sum() - np.trace(values)) / (6 * 5)
    mean = mean_off_diagonal(torch.tensor(values))
    assert mean is not None
    assert float(mean) == pytest.approx(wanted)
