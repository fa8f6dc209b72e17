"""Students that go through their layers several times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import load_model, make_roberta, make_sentences, make_tiny_model
from transformers import AlbertConfig, AlbertModel

from sentcompress.models.encoder import Encoder
from sentcompress.models.factorised import factorised
from sentcompress.models.layout import save_encoder
from sentcompress.models.repeated import repeated
from sentcompress.models.shape import Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent

IDS = torch.tensor([[2, 7, 8, 9, 3], [2, 5, 3, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def states(model: torch.nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        found: torch.Tensor = model(input_ids=IDS, attention_mask=MASK).last_hidden_state
    return found[MASK.bool()]


def electra(folder: Path) -> torch.nn.Module:
    teacher = load_model(make_tiny_model(folder, layers=2)).transformer
    with torch.no_grad():
        for weights in teacher.parameters():  # LayerNorms that are no unit maps, biases that are not zero
            weights.add_(0.1 * torch.randn(weights.shape, generator=torch.Generator().manual_seed(weights.numel())))
    return factorised(teacher, 8, "it")


def test_one_pass_is_the_model_itself(tmp_path: Path) -> None:
    model = electra(tmp_path)
    torch.testing.assert_close(states(repeated(model, 1)), states(model), atol=1e-5, rtol=1e-5)


def test_the_layers_are_applied_in_turn_and_over_again(tmp_path: Path) -> None:
    """Against the same layers put into a deeper model by hand."""
    model, passes = electra(tmp_path), 3
    found = repeated(model, passes)
    assert sum(weights.numel() for weights in found.parameters()) == sum(w.numel() for w in model.parameters())
    wanted = model
    wanted.encoder.layer = torch.nn.ModuleList([*wanted.encoder.layer] * passes)  # type: ignore[union-attr, misc]
    wanted.config.num_hidden_layers = len(wanted.encoder.layer)  # type: ignore[union-attr, arg-type]
    torch.testing.assert_close(states(found), states(wanted), atol=1e-5, rtol=1e-5)


def test_every_application_of_a_layer_has_its_states(tmp_path: Path) -> None:
    """So that the last of the layers that are matched with the teacher's is the last one."""
    source = resolve(str(make_tiny_model(tmp_path / "teacher", layers=3)))
    encoder = InitialStudent("teacher:2", source, Shape(2, token_dim=8, passes=3)).load()
    with torch.inference_mode():
        _, found = encoder.embed_with_states(IDS, MASK)
        assert len(found) == encoder.depth + 1 == 7
        torch.testing.assert_close(found[encoder.depth], encoder.states(IDS, MASK))
        # The first pass is the layers themselves; the second goes on from it.
        once = InitialStudent("teacher:2", source, Shape(2, token_dim=8)).load()
        torch.testing.assert_close(found[2][MASK.bool()], states(once.transformer), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("make", [make_tiny_model, make_roberta])
def test_a_student_is_saved_and_read_back_by_sentence_transformers_too(tmp_path: Path, make: object) -> None:
    from sentence_transformers import SentenceTransformer

    source = resolve(str(make(tmp_path / "teacher")))  # type: ignore[operator]
    student = InitialStudent("teacher:1", source, Shape(1, token_dim=8, passes=2))
    assert student.slug == "teacher-1-e8-p2"
    encoder = student.load()
    save_encoder(encoder, tmp_path / "student")
    again = load_model(tmp_path / "student")
    assert again.config.model_type == "albert"
    assert len(list(again.parameters())) == len(list(encoder.parameters()))
    texts = make_sentences(6)
    theirs = SentenceTransformer(str(tmp_path / "student"), device="cpu")
    for one in (again, encoder):
        np.testing.assert_allclose(vectors(one, texts), theirs.encode(texts), atol=1e-5)


def vectors(encoder: Encoder, texts: list[str]) -> np.ndarray:
    with torch.inference_mode():
        return np.concatenate(
            [
                encoder(ids, torch.ones_like(ids)).numpy()
                for ids in map(torch.tensor, ([r] for r in encoder.tokenize(texts)))
            ]
        )


def test_the_pooler_of_albert_is_left_out(tmp_path: Path) -> None:
    """It is a bare layer, where BERT's is a module that holds one; no sentence vector uses it."""
    folder = make_tiny_model(tmp_path)
    sizes = {"vocab_size": load_model(folder).config.vocab_size, "hidden_size": 32}
    config = AlbertConfig(**sizes, embedding_size=8, num_attention_heads=4, intermediate_size=16, num_hidden_layers=2)
    for path in folder.glob("*.safetensors"):
        path.unlink()
    AlbertModel(config).save_pretrained(folder)
    encoder = load_model(folder)
    assert not [name for name, _ in encoder.named_parameters() if "pooler" in name]
    assert encoder.embed(IDS, MASK).isfinite().all()
