"""Pooling against its definition, and where the padding is makes no difference."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sentcompress.models.pooling import MODES, pool

LENGTHS = (5, 1, 3)


def definition(tokens: np.ndarray, mode: str) -> np.ndarray:
    """One sentence, [T, D] without padding -> [D]."""
    count = len(tokens)
    weights = np.arange(1, count + 1)[:, None]
    return {
        "cls": tokens[0],
        "lasttoken": tokens[-1],
        "max": tokens.max(axis=0),
        "mean": tokens.mean(axis=0),
        "mean_sqrt_len_tokens": tokens.sum(axis=0) / np.sqrt(count),
        "weightedmean": (tokens * weights).sum(axis=0) / weights.sum(),
    }[mode]


def padded(side: str) -> tuple[torch.Tensor, torch.Tensor, list[np.ndarray]]:
    """[3, 5, 4] states with noise in the padding, the mask, and the sentences without padding."""
    generator = np.random.default_rng(0)
    sentences = [generator.normal(size=(length, 4)) for length in LENGTHS]
    states, mask = generator.normal(size=(3, 5, 4)) * 100, np.zeros((3, 5), dtype=np.int64)
    for row, tokens in enumerate(sentences):
        place = slice(0, len(tokens)) if side == "right" else slice(5 - len(tokens), 5)
        states[row, place], mask[row, place] = tokens, 1
    return torch.from_numpy(states), torch.from_numpy(mask), sentences


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("mode", MODES)
def test_pooling_follows_its_definition(mode: str, side: str) -> None:
    states, mask, sentences = padded(side)
    expected = np.stack([definition(tokens, mode) for tokens in sentences])
    np.testing.assert_allclose(pool(states, mask, mode).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_row_without_tokens_gives_no_nan_to_the_others(mode: str) -> None:
    states, mask, sentences = padded("right")
    mask[1] = 0
    pooled = pool(states, mask, mode).numpy()
    np.testing.assert_allclose(pooled[0], definition(sentences[0], mode), atol=1e-6)
    assert np.isfinite(pooled[2]).all()


@pytest.mark.parametrize("mode", ["mean", "weightedmean", "max", "mean_sqrt_len_tokens"])
def test_low_precision_is_kept(mode: str) -> None:
    states, mask, _ = padded("right")
    assert pool(states.bfloat16(), mask, mode).dtype == torch.bfloat16
