"""Weights of tokens: the formula, what they do to a mean, and that sentence-transformers reads and writes the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny_models import load_model, make_tiny_model

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.models.shape import Shape
from sentcompress.models.sources import resolve
from sentcompress.models.students import InitialStudent
from sentcompress.models.token_weights import LEAST, function_tokens, sif_weights
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.models.vocabulary import token_occurrences, trim_vocabulary
from sentcompress.training.batches import Batch
from sentcompress.training.views import TeacherInLoop

TEXTS = ["the dog runs.", "a man , a dog and the cat .", "cat", "the two old horses near the river , quiet", ". ,"]


@pytest.fixture
def plain(tmp_path: Path) -> Encoder:
    return load_model(make_tiny_model(tmp_path / "tiny"))


def counted(encoder: Encoder) -> Any:
    return token_occurrences(encoder, [TEXTS])


def weighed(encoder: Encoder, *, smoothing: float = 0.1) -> Encoder:
    weights = sif_weights(encoder.tokenizer, counted(encoder), smoothing, 0.0)
    return TransformerEncoder(
        encoder.transformer,
        encoder.tokenizer,
        normalize=encoder.normalize,
        text=encoder.text,
        token_weights=weights,
    ).eval()


def batch_of(encoder: Encoder, texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [torch.tensor(ids) for ids in encoder.tokenize(texts)]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
    return ids, (ids > 0).long()


def theirs(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def test_the_formula(plain: Encoder) -> None:
    tokens = plain.tokenizer.get_vocab()
    counts = counted(plain)
    words = [word for text in TEXTS for word in text.replace(".", " .").split()]
    weights = sif_weights(plain.tokenizer, counts, 0.1, 0.5)
    assert float(weights[tokens["dog"]]) == pytest.approx(0.1 / (0.1 + words.count("dog") / len(words)))
    assert float(weights[tokens["."]]) == pytest.approx(0.5 * 0.1 / (0.1 + words.count(".") / len(words)))
    assert float(weights[tokens["guitar"]]) == 1  # it does not occur
    assert {float(weights[tokens[name]]) for name in ("[CLS]", "[SEP]", "[PAD]")} == {1.0}
    without = sif_weights(plain.tokenizer, counts, 0, 0)
    assert {name for name, token in tokens.items() if without[token] < 1} == {".", ","}
    assert float(without.min()) == pytest.approx(LEAST)  # a text of them alone still has a vector


def test_no_tokens_no_weights(plain: Encoder) -> None:
    with pytest.raises(ValueError, match="no token occurs"):
        sif_weights(plain.tokenizer, np.zeros(len(plain.tokenizer), np.int64), 0.1, 0)


def test_function_tokens_are_marks_and_what_is_frequent(plain: Encoder) -> None:
    frequent, marks = function_tokens(plain.tokenizer, counted(plain), 0.07)
    names = plain.tokenizer.convert_ids_to_tokens(frequent)
    assert names[0] == "the"
    assert set(names) == {"the", "a", "dog", "cat"}
    assert set(plain.tokenizer.convert_ids_to_tokens(marks)) == {".", ","}
    assert plain.tokenizer.cls_token_id not in function_tokens(plain.tokenizer, counted(plain), 0.0)[0]


def test_the_vector_is_the_weighted_mean_and_padding_is_not_in_it(plain: Encoder) -> None:
    encoder = weighed(plain)
    assert encoder.token_weights is not None
    ids, mask = batch_of(plain, TEXTS)
    with torch.no_grad():
        states = plain.states(ids, mask).double().numpy()
        found = encoder.embed(ids, mask).numpy()
        pooled, hidden = encoder.embed_with_states(ids, mask)
        blended = encoder.states(ids, mask).numpy()
    weights = encoder.token_weights.detach().double().numpy()[ids.numpy()] * mask.numpy()
    expected = (states * weights[..., None]).sum(axis=1) / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(pooled.numpy(), expected, atol=1e-6)
    # Each token's share of its own state, and of the text's vector for the rest.
    w = encoder.token_weights.detach().numpy()[ids.numpy()][..., None]
    np.testing.assert_allclose(blended, w * states + (1 - w) * expected[:, None], atol=1e-5)
    np.testing.assert_allclose(hidden[-1].numpy(), blended, atol=1e-6)
    assert abs(found - plain.embed(ids, mask).detach().numpy()).max() > 1e-3


def test_the_engine_gives_the_same(plain: Encoder) -> None:
    encoder = weighed(plain)
    rows = [encoder(*batch_of(encoder, [text])).detach().numpy()[0] for text in TEXTS]
    found = EncodeEngine(encoder, dtype="float32", layers=(1, 2)).encode(TEXTS)
    np.testing.assert_allclose(found[:, :32], np.stack(rows), atol=1e-5)
    # The last layer's pooled states are those of the vector.
    last = found[:, 64:] / np.linalg.norm(found[:, 64:], axis=1, keepdims=True)
    np.testing.assert_allclose(last, found[:, :32], atol=1e-5)


def test_saved_and_read_by_us_and_by_sentence_transformers(plain: Encoder, tmp_path: Path) -> None:
    encoder = weighed(plain)
    expected = EncodeEngine(encoder, dtype="float32").encode(TEXTS)
    save_encoder(encoder, tmp_path / "ours")
    modules = json.loads((tmp_path / "ours" / "modules.json").read_text())
    assert [module["type"].rpartition(".")[2] for module in modules] == [
        *("Transformer", "WordWeights", "Pooling", "Normalize")
    ]
    again = load_model(tmp_path / "ours")
    assert again.count_parameters() == plain.count_parameters() + len(plain.tokenizer)
    np.testing.assert_allclose(EncodeEngine(again, dtype="float32").encode(TEXTS), expected, atol=1e-6)
    model = theirs(tmp_path / "ours")
    np.testing.assert_allclose(model.encode(TEXTS, show_progress_bar=False), expected, atol=1e-5)
    model.save(str(tmp_path / "theirs"))
    back = EncodeEngine(load_model(tmp_path / "theirs"), dtype="float32").encode(TEXTS)
    np.testing.assert_allclose(back, expected, atol=1e-5)


def test_a_module_without_a_tensor_goes_by_its_words(plain: Encoder, tmp_path: Path) -> None:
    encoder = weighed(plain)
    save_encoder(encoder, tmp_path)
    (tmp_path / "1_WordWeights" / "model.safetensors").unlink()
    config = json.loads((tmp_path / "1_WordWeights" / "config.json").read_text())
    config["unknown_word_weight"] = config["word_weights"].pop("guitar")
    (tmp_path / "1_WordWeights" / "config.json").write_text(json.dumps(config))
    found = load_model(tmp_path).token_weights
    assert found is not None
    assert encoder.token_weights is not None
    np.testing.assert_allclose(found.detach(), encoder.token_weights.detach(), atol=1e-6)


def test_what_cannot_be_read_is_refused(plain: Encoder, tmp_path: Path) -> None:
    save_encoder(weighed(plain), tmp_path)
    module, modules = tmp_path / "1_WordWeights", tmp_path / "modules.json"
    whole, listed = (module / "model.safetensors").read_bytes(), json.loads(modules.read_text())
    save_file({"emb_layer.weight": torch.ones(3, 1)}, module / "model.safetensors")
    with pytest.raises(InputError, match=r"weights for 3 tokens, the tokenizer has \d+"):
        load_model(tmp_path)
    save_file({"emb_layer.weight": torch.full((len(plain.tokenizer), 1), torch.nan)}, module / "model.safetensors")
    with pytest.raises(InputError, match="NaN or infinite"):
        load_model(tmp_path)
    (module / "model.safetensors").write_bytes(whole[:50])
    with pytest.raises(InputError, match="cannot be read"):
        load_model(tmp_path)
    (module / "model.safetensors").unlink()
    (module / "config.json").write_text('{"vocab": 3}')
    with pytest.raises(InputError, match="weights for 0 tokens"):
        load_model(tmp_path)
    (module / "model.safetensors").write_bytes(whole)
    modules.write_text(json.dumps([listed[0], listed[2], listed[1], listed[3]]))
    with pytest.raises(InputError, match="not before its Pooling"):
        load_model(tmp_path)
    modules.write_text(json.dumps([*listed[:2], *listed[1:]]))
    with pytest.raises(InputError, match="two of them"):
        load_model(tmp_path)
    modules.write_text(json.dumps(listed))
    pooling = tmp_path / "2_Pooling" / "config.json"
    pooling.write_text(json.dumps({"word_embedding_dimension": 32, "pooling_mode": "max"}))
    with pytest.raises(InputError, match="weights tokens before pooling max"):
        load_model(tmp_path)


def test_a_smaller_vocabulary_keeps_the_weights_of_its_tokens(plain: Encoder) -> None:
    encoder = weighed(plain)
    assert encoder.token_weights is not None
    before = encoder.tokenizer.get_vocab()
    old = encoder.token_weights.detach().clone()
    trim_vocabulary(encoder, 20, counted(encoder), "tiny")
    after = encoder.tokenizer.get_vocab()
    assert len(encoder.token_weights) == len(after) == 20
    assert all(float(encoder.token_weights[after[token]]) == float(old[before[token]]) for token in after)


def test_students_of_a_weighed_teacher(plain: Encoder, tmp_path: Path) -> None:
    """One cut from it has a plain mean; it learns from states whose plain mean is the teacher's vector."""
    save_encoder(weighed(plain), tmp_path / "teacher")
    student = InitialStudent("teacher:1", resolve(str(tmp_path / "teacher")), Shape(1)).load()
    assert student.token_weights is None
    teacher = TeacherInLoop(load_model(tmp_path / "teacher"))
    ids, mask = batch_of(plain, TEXTS)
    states = teacher.states(Batch.of(ids, mask, {}, len(TEXTS)), (-1,))[:, 0]
    texts = mask.nonzero()[:, 0]
    means = torch.stack([states[texts == row].mean(dim=0) for row in range(len(TEXTS))])
    with torch.no_grad():
        np.testing.assert_allclose(means, teacher.encoder.embed(ids, mask), atol=1e-5)
