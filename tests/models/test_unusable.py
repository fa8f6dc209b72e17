"""Models of transformers that are no encoders of text end in an error that says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import load_model
from transformers import (
    BartConfig,
    BartModel,
    BrosConfig,
    BrosModel,
    CLIPConfig,
    CLIPModel,
    DPRConfig,
    DPRQuestionEncoder,
    LongT5Config,
    LongT5Model,
)

from sentcompress.errors import InputError
from sentcompress.models.checks import NO_STATES
from sentcompress.models.encoder import TextSettings
from sentcompress.models.library_errors import reading
from sentcompress.models.transformer_encoder import TransformerEncoder

SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4}
OF_T5: dict[str, Any] = {"d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 4}
OF_BART: dict[str, Any] = {
    f"{side}_{name}": number
    for side in ("encoder", "decoder")
    for name, number in (("layers", 1), ("attention_heads", 4), ("ffn_dim", 32))
}


def of_clip(tokens: int) -> Any:
    texts = {**SIZES, "vocab_size": tokens}
    return CLIPModel(CLIPConfig(text_config=texts, vision_config={**SIZES, "image_size": 32}, projection_dim=8))


def saved(make: Callable[[int], Any], tiny_model: Path, folder: Path) -> Path:
    tokenizer = load_model(tiny_model).tokenizer
    torch.manual_seed(0)
    for part in (make(len(tokenizer)), tokenizer):
        part.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda tokens: BrosModel(BrosConfig(vocab_size=tokens, **SIZES)), "You have to specify bbox"),
        (lambda tokens: LongT5Model(LongT5Config(vocab_size=tokens, **OF_T5)), "decoder_input_ids"),
        (lambda tokens: DPRQuestionEncoder(DPRConfig(vocab_size=tokens, **SIZES)), "no attribute 'last_hidden_state'"),
        (of_clip, "embeddings"),
    ],
)
def test_models_that_make_no_token_states_of_a_text(
    make: Callable[[int], Any], message: str, tiny_model: Path, tmp_path: Path
) -> None:
    """They were said to be damaged, and to be downloaded again."""
    with pytest.raises(InputError, match=f"cannot be used: .*{message}") as caught:
        load_model(saved(make, tiny_model, tmp_path))
    assert caught.value.alternatives == NO_STATES


def test_a_model_without_the_states_of_its_layers(tiny_model: Path, tmp_path: Path) -> None:
    """BART's output has those of its encoder and of its decoder."""
    encoder = load_model(
        saved(lambda n: BartModel(BartConfig(vocab_size=n, d_model=32, **OF_BART)), tiny_model, tmp_path)
    )
    ids = torch.tensor(encoder.tokenize(["the dog runs"]))
    assert encoder(ids, torch.ones_like(ids)).shape == (1, 32)
    with pytest.raises(InputError, match="a bart model does not return the states of its layers"):
        encoder.hidden_states(ids, torch.ones_like(ids), every_layer=True)


def test_a_missing_package_is_to_be_installed() -> None:
    with (
        pytest.raises(InputError, match="it cannot be loaded: needs detectron2") as caught,
        reading("it cannot be loaded"),
    ):
        raise ImportError("\nneeds detectron2\nmore\n")
    assert caught.value.hint == "install the package that it needs"


def test_a_configuration_without_the_width_of_the_states() -> None:
    model: Any = torch.nn.Module()
    model.config = SimpleNamespace(model_type="t5gemma")
    tokenizer: Any = SimpleNamespace()
    with pytest.raises(InputError, match="the configuration of a t5gemma model does not name the width"):
        TransformerEncoder(model, tokenizer, text=TextSettings(8)).pooled_dimension  # noqa: B018
