"""Static students: what their folders hold, and who reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from tiny_models import load_model, make_sentences, make_tiny_model
from tokenizers import Tokenizer

from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError
from sentcompress.exporting.folder import halve_weights
from sentcompress.models.encoder import Dense
from sentcompress.models.layout import model_size, read_back, save_encoder
from sentcompress.models.memory import loaded_bytes
from sentcompress.models.shape import Shape, Size
from sentcompress.models.sources import resolve
from sentcompress.models.static_encoder import StaticEncoder
from sentcompress.models.students import InitialStudent

TEXTS = make_sentences(200)
ODD = ["", " ", "a", "dog " * 300, "zebra?!", "the dog", "the dog", "Ünïcode ☃ 犬", "a\tb", "[PAD] dog", "[CLS]"]


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> StaticEncoder:
    source = resolve(str(make_tiny_model(tmp_path_factory.mktemp("teacher"))))
    made = InitialStudent("teacher:static", source, Shape(0)).load([TEXTS])
    assert isinstance(made, StaticEncoder)
    return made


def saved(student: StaticEncoder, folder: Path, **parts: Any) -> Path:
    folder.mkdir(parents=True)
    save_encoder(StaticEncoder(**student.parts() | parts).eval(), folder)
    return folder


def ours(folder: Path, texts: list[str]) -> Any:
    return EncodeEngine(read_back(folder, trust_remote_code=False), device="cpu").encode(texts)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("wide", [None, 48])
def test_sentence_transformers_gives_the_same_vectors(
    student: StaticEncoder, wide: int | None, normalize: bool, tmp_path: Path
) -> None:
    dense = [] if wide is None else [Dense(student.hidden_size, wide, bias=False)]
    folder = saved(student, tmp_path / "model", dense=dense, normalize=normalize)
    texts = [*TEXTS, *ODD]
    theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(ours(folder, texts), theirs, atol=1e-6)


@pytest.mark.parametrize("wide", [None, 48])
def test_float16_weights_are_computed_in_float32(student: StaticEncoder, wide: int | None, tmp_path: Path) -> None:
    dense = [] if wide is None else [Dense(student.hidden_size, wide, bias=False)]
    folder = saved(student, tmp_path / "model", dense=dense, normalize=True)
    halve_weights(folder)
    loaded = SentenceTransformer(str(folder), device="cpu")
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    theirs = loaded.encode([*TEXTS, *ODD])
    assert theirs.dtype == np.float32
    np.testing.assert_allclose(ours(folder, [*TEXTS, *ODD]), theirs, atol=1e-6)


def test_it_is_the_same_after_saving_and_loading(student: StaticEncoder, tmp_path: Path) -> None:
    again = read_back(saved(student, tmp_path / "model"), trust_remote_code=False)
    assert isinstance(again, StaticEncoder)
    assert torch.equal(again.embedding.weight, student.embedding.weight)
    assert again.tokenize([*TEXTS, *ODD]) == student.tokenize([*TEXTS, *ODD])
    assert (again.text, again.make(), again.padding) == (student.text, ("static", 0), student.padding)
    assert again.text.max_length == 64


def test_the_folder_is_one_of_model2vec(student: StaticEncoder, tmp_path: Path) -> None:
    folder = saved(student, tmp_path / "model")
    assert list(load_file(folder / "model.safetensors")) == ["embeddings"]
    assert json.loads((folder / "config.json").read_text())["normalize"] is True
    assert json.loads((folder / "modules.json").read_text())[0]["path"] == "."
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    assert tokenizer.encode("the dog").tokens == ["the", "dog"]
    assert len(tokenizer.encode("dog " * 100)) == 64
    source = resolve(str(folder))
    assert model_size(source) == Size(student.embedding.weight.numel(), 32)
    assert loaded_bytes(folder) == 4 * student.embedding.weight.numel()


def of_sentence_transformers(folder: Path, table: torch.Tensor) -> None:
    """As `StaticEmbedding.save` of sentence-transformers writes it: a folder of its own, without a configuration."""
    inner = folder / "0_StaticEmbedding"
    inner.mkdir()
    (folder / "tokenizer.json").rename(inner / "tokenizer.json")
    save_file({"embedding.weight": table}, inner / "model.safetensors")
    for name in ("config.json", "tokenizer_config.json", "model.safetensors"):
        (folder / name).unlink()
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = inner.name
    (folder / "modules.json").write_text(json.dumps(modules))


def in_int8(folder: Path, table: torch.Tensor) -> None:
    """Rows in int8 and their scales, as model2vec's weights."""
    scales = table.abs().amax(dim=1).clamp_min(1e-9) / 127
    rows = (table / scales.unsqueeze(1)).round().to(torch.int8)
    save_file({"embeddings": rows, "weights": scales}, folder / "model.safetensors")


def shared_rows(folder: Path, table: torch.Tensor) -> None:
    """A vocabulary whose tokens share rows, as model2vec's quantised ones."""
    mapping = torch.arange(len(table)).flip(0)
    save_file({"embeddings": table.flip(0).contiguous(), "mapping": mapping}, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "cosine"), [(of_sentence_transformers, 1 - 1e-6), (in_int8, 0.999), (shared_rows, 1 - 1e-6)]
)
def test_folders_of_others_are_read(
    student: StaticEncoder, change: Callable[[Path, torch.Tensor], None], cosine: float, tmp_path: Path
) -> None:
    expected = ours(saved(student, tmp_path / "before"), TEXTS)
    folder = saved(student, tmp_path / "model")
    change(folder, student.embedding.weight.detach())
    found = ours(folder, TEXTS)
    assert (found * expected).sum(axis=1).min() > cosine
    theirs = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(found, theirs, atol=1e-6)


@pytest.mark.parametrize("change", [of_sentence_transformers, shared_rows])
def test_an_empty_text_is_zero_whatever_pads(
    student: StaticEncoder, change: Callable[[Path, torch.Tensor], None], tmp_path: Path
) -> None:
    folder = saved(student, tmp_path / "model")
    table = student.embedding.weight.detach().clone()
    table[student.padding] = 1.0
    change(folder, table)
    texts = ["", " ", "the dog"]
    theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
    assert not theirs[0].any()
    np.testing.assert_allclose(ours(folder, texts), theirs, atol=1e-6)


def test_an_unknown_token_that_pads_keeps_its_vector(student: StaticEncoder, tmp_path: Path) -> None:
    folder = saved(student, tmp_path / "model")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pad_token": "[UNK]"}))
    table = student.embedding.weight.detach().clone()
    table[student.tokenizer.get_vocab()["[UNK]"]] = 1.0
    save_file({"embeddings": table}, folder / "model.safetensors")
    assert ours(folder, ["\U00013000"]).any()


@pytest.mark.parametrize(
    ("name", "tensors", "message"),
    [
        ("model.safetensors", {"other": torch.zeros(3, 4)}, "no table of token vectors"),
        ("model.safetensors", {"embeddings": torch.zeros(3)}, "no table of token vectors"),
        ("model.safetensors", {"embeddings": torch.zeros(3, 4)}, "has only 3 embeddings"),
        ("model.safetensors", {"embeddings": torch.full((100, 4), torch.nan)}, "NaN"),
        ("model.safetensors", None, "no weights"),
        ("tokenizer.json", None, "no tokenizer"),
    ],
)
def test_damaged_folders_are_refused(
    student: StaticEncoder, name: str, tensors: dict[str, torch.Tensor] | None, message: str, tmp_path: Path
) -> None:
    folder = saved(student, tmp_path / "model")
    if tensors is None:
        (folder / name).unlink()
    else:
        save_file(tensors, folder / name)
    with pytest.raises(InputError, match=message):
        load_model(folder)


def test_token_weights_beside_a_table_are_refused(student: StaticEncoder, tmp_path: Path) -> None:
    folder = saved(student, tmp_path / "model")
    path = folder / "modules.json"
    modules = json.loads(path.read_text())
    pooling = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
    path.write_text(json.dumps([modules[0], pooling]))
    with pytest.raises(InputError, match="is pooled already"):
        load_model(folder)


def test_only_a_plain_mean_is_static(student: StaticEncoder) -> None:
    with pytest.raises(ValueError, match="plain mean"):
        StaticEncoder(**student.parts() | {"pooling": ("max",)})
    with pytest.raises(ValueError, match="no layers"):
        student.infer(torch.tensor([[7]]), torch.ones(1, 1), layers=[1])
