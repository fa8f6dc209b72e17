"""What a transformer of sentence-transformers computes of a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from tiny_models import load_model, make_plain, make_sentences

from sentcompress.errors import InputError
from sentcompress.exporting.verification import encoder_vectors
from sentcompress.models.sources import resolve


def saved(plain: Path, folder: Path) -> SentenceTransformer:
    """A model of a plain checkpoint, which sentence-transformers writes to the folder."""
    model = SentenceTransformer(modules=[modules.Transformer(str(plain)), modules.Pooling(32, "mean")], device="cpu")
    model.save(str(folder), create_model_card=False)
    return model


def test_a_chat_template_changes_the_vectors_and_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    plain, texts = make_plain(tmp_path / "plain", tiny_model), make_sentences(3)
    without = saved(plain, tmp_path / "without").encode(texts)
    np.testing.assert_allclose(encoder_vectors(load_model(tmp_path / "without"), texts), without, atol=1e-5)
    template = "{% for message in messages %}the man {{ message['content'] }}{% endfor %}"
    (plain / "chat_template.jinja").write_text(template, encoding="utf-8")
    assert np.abs(saved(plain, tmp_path / "with").encode(texts) - without).max() > 0.01
    with pytest.raises(InputError, match="puts every text into a chat template"):
        load_model(tmp_path / "with")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transformer_task": "fill-mask"}, "transformer_task is 'fill-mask'"),
        (
            {"modality_config": {"text": {"method": "get_text_features", "method_output_name": "pooler_output"}}},
            "does not make token states of a text",
        ),
        ({"modality_config": {"image": {"method": "forward", "method_output_name": "last_hidden_state"}}}, "token st"),
        ({"modality_config": {"text": {"method": "forward", "method_output_name": ["last_hidden_state"]}}}, ""),
        ({"modality_config": None}, ""),
    ],
)
def test_other_outputs_are_refused(changes: dict[str, Any], message: str, tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    saved(make_plain(tmp_path / "plain", tiny_model), folder)
    path = folder / "sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    assert resolve(str(folder))
    if message:
        with pytest.raises(InputError, match=message):
            load_model(folder)
    else:
        assert load_model(folder).dimension == 32
