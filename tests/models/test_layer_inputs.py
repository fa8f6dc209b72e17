"""Sums over the inputs of linear layers: padding is left out, and a layer that is used twice counts twice."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from sentcompress.models.layer_inputs import LayerInputs


def test_tokens_and_pooled_texts_are_summed_without_padding() -> None:
    torch.manual_seed(0)
    states, pooled, unused = nn.Linear(6, 6), nn.Linear(6, 4), nn.Linear(6, 4)
    inputs = LayerInputs([states, pooled, unused])
    seen: list[torch.Tensor] = []
    texts: list[torch.Tensor] = []
    with inputs.watching():
        for lengths in ([3, 5], [2, 2, 4]):
            mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
            tokens = torch.randn(len(lengths), max(lengths), 6)
            once = states(tokens)
            pooled(states(once).mean(1))
            inputs.add(mask)
            seen += [tokens[mask], once[mask]]
            texts.append(states(once).mean(1).detach())
            inputs._seen[0].clear()  # of the line above
    pooled(torch.randn(3, 6))
    for place, expected in enumerate((torch.cat(seen).detach(), torch.cat(texts))):
        assert inputs.counts[place] == len(expected)
        torch.testing.assert_close(inputs.totals[place], expected.double().sum(0), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(
            inputs.products[place], expected.double().T @ expected.double(), rtol=1e-4, atol=1e-4
        )
    assert inputs.counts[2] == 0
    assert not inputs.products[2].any()


def test_pooled_texts_as_wide_as_the_batch_is_long_are_no_tokens() -> None:
    layer, texts = nn.Linear(5, 2), torch.randn(3, 5)
    inputs = LayerInputs([layer])
    with inputs.watching():
        layer(texts)
        inputs.add(torch.arange(5) < torch.tensor([5, 2, 3]).unsqueeze(1))
    assert inputs.counts == [3]
    torch.testing.assert_close(inputs.totals[0], texts.double().sum(0))
    torch.testing.assert_close(inputs.products[0], (texts.T @ texts).double())


def test_nothing_is_watched_after_an_error() -> None:
    layer = nn.Linear(6, 6)
    inputs = LayerInputs([layer])
    with pytest.raises(KeyboardInterrupt), inputs.watching():
        raise KeyboardInterrupt
    layer(torch.randn(2, 6))
    inputs.add(torch.ones(2, 1, dtype=torch.bool))
    assert inputs.counts == [0]
