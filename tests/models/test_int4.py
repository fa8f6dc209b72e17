"""Weights in 4 bits: how exact they are, that rounding twice changes nothing, and that training goes through it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sentcompress.models.int4 import DAMPING, RoundedWeights, blocks_of, fitted, packable_weights
from sentcompress.models.layer_inputs import LayerInputs
from sentcompress.models.weight_formats import BITS, BLOCK, is_packable


@pytest.mark.parametrize("spread", [1e-3, 0.05, 30.0])
def test_a_weight_is_at_most_half_a_step_from_what_is_stored(spread: float) -> None:
    torch.manual_seed(0)
    weight = spread * torch.randn(50, 3 * BLOCK)
    blocks = blocks_of(weight)
    error = (blocks.decoded() - weight).abs().view(50, 3, BLOCK)
    # Half a step, and a little at the ends, where the rounded zero point shifts the whole block by up to half a step.
    assert (error <= 1.01 * blocks.scales.float().unsqueeze(2)).all()
    assert float(error.mean() / blocks.scales.float().mean()) < 0.3
    assert blocks.codes.max() == 15
    assert blocks.codes.min() == 0
    assert BITS == 4.625


def test_rounded_weights_are_stored_as_they_are() -> None:
    """Of a million blocks, many have ends that lie almost halfway between two levels."""
    torch.manual_seed(1)
    weight = torch.randn(20_000, 16 * BLOCK) * torch.rand(20_000, 1)
    # Blocks of one sign, of zeros, and with both ends exactly halfway.
    weight[0], weight[1], weight[2] = weight[0].abs(), -weight[1].abs(), 0
    weight[3, :BLOCK] = torch.linspace(-5.5, 9.5, BLOCK)
    weight[4, :BLOCK] = torch.linspace(-6.5, 8.5, BLOCK)
    once = blocks_of(weight).decoded()
    assert torch.equal(blocks_of(once).decoded(), once)
    assert (once[2] == 0).all()


def correlated(rows: int, columns: int) -> torch.Tensor:
    """Inputs of which each is a mix of a few others."""
    return torch.randn(rows, columns // 4) @ torch.randn(columns // 4, columns) + 0.3 * torch.randn(rows, columns)


def test_fitted_weights_are_those_that_least_squares_gives_after_each_column() -> None:
    """A column is rounded, and all later ones are solved for again, from the exact weights."""
    torch.manual_seed(0)
    weight, inputs = torch.randn(40, 3 * BLOCK), correlated(500, 3 * BLOCK)
    moments = (inputs.T @ inputs).double()
    found = blocks_of(fitted(weight, moments))

    exact = weight.double()
    damped = moments + DAMPING * moments.diagonal().mean() * torch.eye(3 * BLOCK, dtype=torch.float64)
    left, wanted = exact.clone(), torch.zeros_like(exact)
    for at in range(3 * BLOCK):
        if at % BLOCK == 0:
            part = left[:, at : at + BLOCK]
            low, high = part.amin(1).clamp_max(0), part.amax(1).clamp_min(0)
            scale = ((high - low) / 15).half().double()
            zero = torch.round(-low / scale)
            first, last = part.argmin(1), part.argmax(1)
        code = (torch.round(left[:, at] / scale) + zero).clamp(0, 15)
        code[first == at % BLOCK], code[last == at % BLOCK] = 0, 15
        wanted[:, at] = (code - zero) * scale
        error = (wanted - exact)[:, : at + 1]
        if at + 1 < 3 * BLOCK:
            solved = torch.linalg.solve(damped[at + 1 :, at + 1 :], damped[at + 1 :, : at + 1] @ error.T)
            left[:, at + 1 :] = exact[:, at + 1 :] - solved.T
    # One weight that is rounded the other way, where it lies halfway, changes the rest of its row.
    same = (found.decoded() == wanted.float()).all(1)
    assert same.float().mean() > 0.9


def test_fitted_weights_lose_less_of_the_product_and_are_stored_as_they_are() -> None:
    torch.manual_seed(0)
    weight, inputs = torch.randn(200, 8 * BLOCK), correlated(1000, 8 * BLOCK)
    weight[0], weight[1], weight[2] = weight[0].abs(), -weight[1].abs(), 0
    moments = (inputs.T @ inputs).double()
    start, nearest = fitted(weight, moments), blocks_of(weight).decoded()
    rounded = blocks_of(start).decoded()
    lost = [float((inputs @ (one - weight).T).square().mean()) for one in (rounded, nearest)]
    assert lost[0] < 0.3 * lost[1]
    # What is returned is not rounded: training goes on from it.
    assert float((start - rounded).abs().mean()) > 0.1 * float((weight - nearest).abs().mean())
    for other in (moments, torch.eye(8 * BLOCK)):
        assert torch.equal(blocks_of(fitted(rounded, other)).decoded(), rounded)
    assert (rounded[2] == 0).all()


def test_without_correlations_the_fitted_weights_are_the_nearest() -> None:
    torch.manual_seed(0)
    weight = torch.randn(100, 4 * BLOCK)
    assert torch.equal(fitted(weight, torch.eye(4 * BLOCK)), weight)


@pytest.mark.parametrize("scale", [1e-12, 1e-6])
def test_tiny_fitted_weights_and_inputs_without_any_value_stay_finite(scale: float) -> None:
    torch.manual_seed(0)
    inputs = correlated(100, 2 * BLOCK)
    inputs[:, :5] = 0
    found = fitted(scale * torch.randn(10, 2 * BLOCK), inputs.T @ inputs)
    assert found.isfinite().all()
    assert blocks_of(found).decoded().isfinite().all()


@pytest.mark.parametrize("value", [0.0, float("inf"), float("nan")])
def test_nothing_is_fitted_to_inputs_that_are_zero_or_no_numbers(value: float) -> None:
    weight = torch.randn(10, BLOCK)
    assert torch.equal(fitted(weight, torch.full((BLOCK, BLOCK), value)), weight)


def test_layers_are_fitted_to_their_inputs_and_those_without_any_stay_exact() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 128), nn.Linear(128, 128))
    unused, narrow = nn.Linear(128, 128), nn.Linear(128, 4)
    exact = [layer.weight.detach().clone() for layer in (*model, unused, narrow)]
    rounded = RoundedWeights(model, nn.ModuleList([unused, narrow, model]))
    assert rounded.layers == [*model, unused]
    inputs, texts = LayerInputs(rounded.layers), correlated(300, 128)
    with inputs.watching():
        model(texts)
        inputs.add(torch.ones(300, 1, dtype=torch.bool))
    rounded.fit(inputs)
    assert torch.equal(model[0].weight, fitted(exact[0], (texts.T @ texts).double()))
    assert not torch.equal(model[1].weight, exact[1])
    assert torch.equal(unused.weight, exact[2])
    assert torch.equal(narrow.weight, exact[3])


def test_blocks_of_zeros_and_of_tiny_weights_stay_finite_and_within_four_bits() -> None:
    """float16 rounds scales this small by up to a quarter."""
    torch.manual_seed(0)
    weight = torch.rand(1000, BLOCK) * torch.logspace(-12, -4, 1000).unsqueeze(1)
    for signed in (weight, -weight, weight - weight.mean(1, keepdim=True)):
        blocks = blocks_of(signed)
        assert blocks.decoded().isfinite().all()
        assert (blocks.decoded() - signed).abs().max() < 1e-5
        assert max(int(blocks.codes.max()), int(blocks.zeros.max())) <= 15


def test_what_is_packed_is_large_and_divides_into_blocks() -> None:
    assert is_packable((384, 384))
    assert not is_packable((384, 100))
    assert not is_packable((2, 384))
    assert not is_packable((384, 384, 2))
    model = nn.Sequential(nn.Embedding(600, 32), nn.Linear(32, 600), nn.LayerNorm(32), nn.Linear(32, 4))
    assert [tuple(weight.shape) for weight in packable_weights(model)] == [(600, 32), (600, 32)]


def test_exact_weights_are_trained_by_the_gradients_of_rounded_ones() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(128, 128, bias=False)
    exact, rounded = layer.weight.detach().clone(), blocks_of(layer.weight).decoded()
    inputs = torch.randn(5, 128)
    with RoundedWeights(layer).in_place():
        assert torch.equal(layer.weight, rounded)
        outputs = layer(inputs)
        outputs.square().sum().backward()
    assert torch.equal(layer.weight, exact)
    torch.testing.assert_close(layer.weight.grad, 2 * (inputs @ rounded.T).T @ inputs)


def test_exact_weights_return_after_an_error() -> None:
    layer = nn.Linear(128, 128)
    exact = layer.weight.detach().clone()
    with pytest.raises(KeyboardInterrupt), RoundedWeights(layer).in_place():
        raise KeyboardInterrupt
    assert torch.equal(layer.weight, exact)
