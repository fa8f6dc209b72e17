"""Weights in 4 bits: how exact they are, that rounding twice changes nothing, and that training goes through it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sentcompress.models.int4 import RoundedWeights, blocks_of, packable_weights
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
