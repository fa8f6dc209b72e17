"""The check at the end of an export sees what would be lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import load_model
from transformers import ConvBertConfig, ConvBertModel

from sentcompress.errors import SentcompressError
from sentcompress.exporting import verification
from sentcompress.exporting.folder import Folder
from sentcompress.exporting.formats import Format
from sentcompress.exporting.verification import (
    agreement,
    encoder_vectors,
    require_agreement,
    unit,
    with_extremes,
)
from sentcompress.models.encoder import Dense, Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.models.text_settings import MOST_TOKENS, TextSettings
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.progress import SILENT


@pytest.fixture(scope="module")
def student(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Encoder, Path]:
    """An encoder with a square Dense layer, so that nothing but the vectors tells of its loss."""
    base = load_model(tiny_model)
    torch.manual_seed(0)
    encoder = TransformerEncoder(base.transformer, base.tokenizer, dense=[Dense(32, 32)], text=base.text).eval()
    folder = tmp_path_factory.mktemp("student")
    save_encoder(encoder, folder)
    return encoder, folder


@pytest.fixture
def copy(student: tuple[Encoder, Path], tmp_path: Path) -> Path:
    return shutil.copytree(student[1], tmp_path / "copy")


def verify(encoder: Encoder, folder: Path, sentences: list[str]) -> verification.VectorAgreement:
    texts = with_extremes(sentences[:20], encoder)
    found = Folder().open(encoder, folder, trust_remote_code=False).vectors(texts)
    return require_agreement(found, encoder_vectors(encoder, texts), "the exported folder")


def test_a_whole_folder_agrees(student: tuple[Encoder, Path], sentences: list[str]) -> None:
    found = verify(*student, sentences)
    assert found.texts == 22
    assert found.min_cosine > 0.999999


def drop_module(folder: Path, kind: str) -> None:
    path = folder / "modules.json"
    path.write_text(json.dumps([m for m in json.loads(path.read_text()) if not m["type"].endswith(kind)]))


def test_a_dropped_dense_layer_fails(student: tuple[Encoder, Path], copy: Path, sentences: list[str]) -> None:
    drop_module(copy, "Dense")
    with pytest.raises(SentcompressError, match="failed verification"):
        verify(student[0], copy, sentences)


def test_a_dense_layer_that_changes_the_width_fails_with_its_numbers(student: tuple[Encoder, Path]) -> None:
    with pytest.raises(SentcompressError, match="vectors of 8 dimensions instead of 32"):
        agreement(np.zeros((1, 8), np.float32), np.zeros((1, 32), np.float32))


def test_a_forgotten_mean_fails(student: tuple[Encoder, Path], copy: Path, sentences: list[str]) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(copy / "2_Dense" / "model.safetensors")
    save_file(weights | {"linear.bias": weights["linear.bias"] + 0.05}, copy / "2_Dense" / "model.safetensors")
    with pytest.raises(SentcompressError, match="has a cosine of"):
        verify(student[0], copy, sentences)


def test_a_lost_normalisation_fails(student: tuple[Encoder, Path], copy: Path, sentences: list[str]) -> None:
    drop_module(copy, "Normalize")
    with pytest.raises(SentcompressError, match="different length"):
        verify(student[0], copy, sentences)


def test_another_limit_on_the_length_fails(student: tuple[Encoder, Path], copy: Path, sentences: list[str]) -> None:
    path = copy / "sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"max_seq_length": 48}))
    with pytest.raises(SentcompressError, match="has a cosine of"):
        verify(student[0], copy, sentences)


def test_extremes_are_added(student: tuple[Encoder, Path]) -> None:
    encoder = student[0]
    texts = with_extremes(["the dog", "a cat runs"], encoder)
    lengths = [len(ids) for ids in encoder.tokenize(texts)]
    assert min(lengths) == 3
    assert max(lengths) == encoder.text.max_length
    assert {"the dog", "a cat runs"} < set(texts)


@pytest.mark.parametrize("limit", [10_000, MOST_TOKENS])
def test_without_a_limit_the_long_text_has_a_bounded_length(student: tuple[Encoder, Path], limit: int) -> None:
    base = student[0]
    assert isinstance(base, TransformerEncoder)
    encoder = TransformerEncoder(base.transformer, base.tokenizer, text=TextSettings(limit))
    for texts in (["the dog", "a cat runs"], ["the dog " * 2000, "a cat runs"]):
        added = sorted(set(with_extremes(texts, encoder)) - set(texts), key=len)
        assert 900 < len(encoder.tokenize(added[-1:])[0]) < 1100


class CountingReader:
    """Gives the length of each text, and counts the tokens of its batches with their padding."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def vectors(self, texts: list[str], batch: int = 32) -> np.ndarray:
        assert len(texts) <= batch
        self.tokens.append(len(texts) * max(map(len, texts)))
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def test_a_long_text_is_a_batch_by_itself() -> None:
    texts = ["x" * size for size in (*range(1, 42), 8192)]
    reader = CountingReader()
    found = verification.BoundedReader(reader, lambda texts: [[0] * len(text) for text in texts]).vectors(texts)
    assert found[:, 0].tolist() == [len(text) for text in texts]
    assert reader.tokens == [32 * 32, 9 * 41, 8192]


def test_a_zero_or_broken_vector_has_no_cosine() -> None:
    expected = unit(np.ones((3, 4), np.float32))
    found = expected.copy()
    found[1] = 0
    found[2] = np.nan
    result = agreement(found, expected)
    assert result.min_cosine == 0
    assert result.mean_cosine == pytest.approx(1 / 3)


def test_a_broken_reference_has_no_cosine_either() -> None:
    found = unit(np.ones((3, 4), np.float32))
    expected = found.copy()
    expected[0, 1] = np.nan
    expected[1, 2] = np.inf
    result = agreement(found, expected)
    assert (result.min_cosine, result.length_error) == (0, 1)
    assert result.mean_cosine == pytest.approx(1 / 3)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_vectors_that_are_not_numbers_never_agree(value: float) -> None:
    whole = unit(np.ones((3, 4), np.float32))
    broken = whole.copy()
    broken[1, 2] = value
    with pytest.raises(SentcompressError, match="the model gives NaN or infinity for 1 of 3 sentences"):
        require_agreement(broken, broken, "the folder")
    with pytest.raises(SentcompressError, match="the folder gives NaN or infinity for 1 of 3 sentences"):
        require_agreement(broken, whole, "the folder")


class FixedReader:
    """A graph that gives what it is told; single texts may get other vectors than batches."""

    def __init__(self, batched: np.ndarray, single: np.ndarray) -> None:
        self.given = {True: single, False: batched}

    def vectors(self, texts: list[str], batch: int = 32) -> np.ndarray:
        return self.given[batch == 1]


def test_an_exact_format_is_checked_in_batches_and_one_text_at_a_time(student: tuple[Encoder, Path]) -> None:
    encoder, texts = student[0], ["the dog runs", "a cat"]
    vectors = encoder_vectors(encoder, texts)
    one = Format()
    one.title = "graph"

    def verified(batched: np.ndarray, single: np.ndarray) -> dict[str, dict[str, Any]]:
        return verification.verify_formats(encoder, texts, {"g": one}, {"g": FixedReader(batched, single)}, SILENT)

    assert verified(vectors, vectors)["g"]["min_cosine"] > 0.9999
    for batched, single in ((vectors, -vectors), (-vectors, vectors)):
        with pytest.raises(SentcompressError, match="has a cosine of -1"):
            verified(batched, single)


def test_a_model_whose_vectors_depend_on_padding_is_named(student: tuple[Encoder, Path], sentences: list[str]) -> None:
    """Its export would be said to differ from it."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32}
    base = student[0]
    model = ConvBertModel(ConvBertConfig(vocab_size=len(base.tokenizer), **sizes, initializer_range=0.5))
    encoder = TransformerEncoder(model, base.tokenizer, text=base.text).eval()
    with pytest.raises(SentcompressError, match="vectors of a convbert model depend on the padding of their batch"):
        verification.verify_formats(encoder, with_extremes(sentences[:20], encoder), {}, {}, SILENT)


def test_int8_vectors_of_zeros_fail_even_when_batches_are_fine() -> None:
    pytest.importorskip("onnxruntime", reason="the onnx extra is not installed")
    expected = unit(np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32))
    single = expected.copy()
    single[3, 5] = np.nan
    with pytest.raises(SentcompressError, match="NaN or infinity in 1 int8 vector"):
        verification.check_inexact(FixedReader(expected, single), ["x"] * 5, expected, "int8")
    single = expected.copy()
    single[3] = 0
    with pytest.raises(SentcompressError, match="only zeros in 1 int8 vector"):
        verification.check_inexact(FixedReader(expected, single), ["x"] * 5, expected, "int8")
    found = verification.check_inexact(FixedReader(expected, -expected), ["x"] * 5, expected, "int8")
    assert found["min_cosine"] == pytest.approx(1)
    assert found["single_min_cosine"] == pytest.approx(-1)
    assert found["batch_to_single_min_cosine"] == pytest.approx(-1)
