"""No model with NaN or infinity among its weights is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import load_model

from sentcompress.errors import SentcompressError
from sentcompress.models.checks import unsound
from sentcompress.models.layout import save_encoder


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_one_bad_weight_keeps_a_model_from_being_written(tiny_model: Path, tmp_path: Path, value: float) -> None:
    encoder = load_model(tiny_model)
    with torch.no_grad():
        encoder.transformer.get_input_embeddings().weight[7, 3] = value  # type: ignore[operator]
    with pytest.raises(SentcompressError, match=r"word_embeddings.weight \(1 of [0-9,]+ values\)"):
        save_encoder(encoder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_first_tensor_with_nan_or_infinity_is_named() -> None:
    whole = {"ids": torch.arange(3), "weight": torch.ones(2, 3)}
    assert unsound(whole) is None
    assert unsound({**whole, "bias": torch.tensor([1.0, torch.nan, torch.inf])}) == "bias (2 of 3 values)"
    assert unsound({"mean": np.float32([1, np.inf])}) == "mean (1 of 2 values)"
