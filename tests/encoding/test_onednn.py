"""oneDNN's linear layers give what torch's give."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sentcompress.encoding.onednn import OneDnnLinear, onednn_is_here, use_onednn

pytestmark = pytest.mark.skipif(not onednn_is_here(), reason="this torch has no oneDNN operators")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 48), (3, 7, 48), (1, 1, 48)])
def test_it_is_the_same_map(bias: bool, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    linear, inputs = nn.Linear(48, 20, bias=bias), torch.randn(shape)
    with torch.inference_mode():
        torch.testing.assert_close(OneDnnLinear(linear)(inputs), linear(inputs), rtol=0, atol=1e-6)


def test_it_computes_in_bfloat16_too() -> None:
    torch.manual_seed(0)
    linear, inputs = nn.Linear(48, 20).bfloat16(), torch.randn(9, 48).bfloat16()
    with torch.inference_mode():
        torch.testing.assert_close(OneDnnLinear(linear)(inputs), linear(inputs), rtol=0.02, atol=0.02)


def test_only_plain_linear_layers_are_replaced() -> None:
    class Own(nn.Linear):
        pass

    module = nn.Sequential(nn.Linear(4, 4), nn.Sequential(Own(4, 4), nn.Linear(4, 2)), nn.LayerNorm(2))
    use_onednn(module)
    kinds = [type(layer) for layer in (module[0], module[1][0], module[1][1], module[2])]
    assert kinds == [OneDnnLinear, Own, OneDnnLinear, nn.LayerNorm]
