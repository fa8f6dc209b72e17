"""Which files a model is made of: all that loading reads is in its digest, and nothing lies outside of its folder."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hostile import ask_for_code, with_code
from hub import fetching
from safetensors.torch import load_file, save_file
from tiny_models import load_model

from sentcompress.errors import InputError
from sentcompress.models import sources
from sentcompress.models.encoder import Dense
from sentcompress.models.layout import load_encoder, save_encoder
from sentcompress.models.sources import locate, resolve
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.stages import eval_sts
from sentcompress.store import WorkDirectory

DENSE = Path("parts", "deep", "2_Dense")
OPENED: list[str] = []


def listen(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        OPENED.append(arguments[0])


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A model whose Dense layer lies three folders down."""
    encoder, folder = load_model(tiny_model), tmp_path_factory.mktemp("nested") / "model"
    torch.manual_seed(1)
    save_encoder(TransformerEncoder(**encoder.parts() | {"dense": [Dense(32, 8)]}), folder)
    (folder / DENSE).parent.mkdir(parents=True)
    (folder / "2_Dense").rename(folder / DENSE)
    listed = json.loads((folder / "modules.json").read_text())
    listed[2]["path"] = DENSE.as_posix()
    (folder / "modules.json").write_text(json.dumps(listed))
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "model")


def vectors(folder: Path | str) -> np.ndarray[Any, np.dtype[np.float32]]:
    encoder = load_model(folder)
    ids = torch.tensor(encoder.tokenize(["the dog reads"]))
    with torch.inference_mode():
        return encoder(ids, torch.ones_like(ids)).numpy()  # type: ignore[no-any-return]


def change_weights(path: Path) -> None:
    save_file({name: 2 * tensor + 1 for name, tensor in load_file(path).items()}, path)


def set_path(folder: Path, path: str) -> None:
    listed = json.loads((folder / "modules.json").read_text())
    listed[2]["path"] = path
    (folder / "modules.json").write_text(json.dumps(listed))


def test_a_module_far_down_is_in_the_digest(folder: Path) -> None:
    before, digest = vectors(folder), resolve(str(folder)).digest
    change_weights(folder / DENSE / "model.safetensors")
    assert resolve(str(folder)).digest != digest
    assert not np.allclose(vectors(folder), before)


def test_scores_of_changed_weights_are_taken_again(folder: Path, tmp_path: Path, sentences: list[str]) -> None:
    pairs = zip(range(20), sentences[:20], sentences[20:40], strict=True)
    (tmp_path / "stsb.tsv").write_text("".join(f"{number % 6}\t{one}\t{two}\n" for number, one, two in pairs))
    work, params = (
        WorkDirectory(tmp_path / "work"),
        eval_sts.Params(sts=[tmp_path / "stsb.tsv"], model=str(folder), device="cpu"),
    )
    before = eval_sts.run(params, work).facts
    change_weights(folder / DENSE / "model.safetensors")
    assert eval_sts.run(params, work).facts["scores"] != before["scores"]


@pytest.mark.parametrize("change", ["parent", "absolute", "parent inside", "linked folder", "linked file"])
def test_what_lies_outside_is_refused(change: str, folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (folder / DENSE).rename(outside)
    if change == "parent":
        set_path(folder, "../outside")
    elif change == "absolute":
        set_path(folder, str(outside))
    elif change == "parent inside":
        set_path(folder, "parts/../../outside")
    elif change == "linked folder":
        (folder / DENSE).symlink_to(outside)
    else:
        (folder / DENSE).mkdir()
        for path in outside.iterdir():
            (folder / DENSE / path.name).symlink_to(path)
    with pytest.raises(InputError, match="outside the model folder") as caught:
        resolve(str(folder))
    assert caught.value.hint == "copy all files of the model into its folder"


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.txt", "config.json", "model.safetensors"])
def test_a_link_to_a_file_outside_is_refused(name: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("a secret")
    if (folder / name).exists():
        (folder / name).rename(tmp_path / "other")
    (folder / name).symlink_to(tmp_path / "other")
    with pytest.raises(InputError, match=f"{name} points outside the model folder"):
        resolve(str(folder))


def test_links_within_the_folder_are_followed(folder: Path, tmp_path: Path) -> None:
    before = vectors(folder)
    (folder / DENSE).rename(folder / "elsewhere")
    (folder / DENSE).symlink_to(folder / "elsewhere")
    (tmp_path / "by-another-name").symlink_to(folder)
    np.testing.assert_array_equal(vectors(tmp_path / "by-another-name"), before)


def test_links_in_a_circle_lead_nowhere(folder: Path) -> None:
    shutil.rmtree(folder / DENSE)
    (folder / DENSE).symlink_to(folder / "second")
    (folder / "second").symlink_to(folder / DENSE)
    with pytest.raises(InputError, match="cannot be resolved"):
        resolve(str(folder))


def test_a_packages_links_are_followed(folder: Path, tmp_path: Path) -> None:
    """Installers such as uv can make a package of links into their cache."""
    linked = tmp_path / "package"
    for path in folder.rglob("*"):
        if path.is_file():
            target = linked / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path)
    with pytest.raises(InputError, match="points outside the model folder"):
        resolve(str(linked))
    assert sources._folder(linked, "embedded", links=True).digest == resolve(str(folder)).digest


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_a_hubs_model_comes_with_modules_far_down(
    weights: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    before = vectors(folder)
    if weights.endswith(".bin"):
        torch.save(load_file(folder / DENSE / "model.safetensors"), folder / DENSE / weights)
        (folder / DENSE / "model.safetensors").unlink()
        tensors = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        torch.save(tensors, folder / "pytorch_model-00001-of-00001.bin")
        index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "pytorch_model-00001-of-00001.bin")}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    with fetching({"owner/model": folder}, tmp_path / "cache", monkeypatch):
        np.testing.assert_allclose(vectors("owner/model"), before, atol=1e-6)
        source = locate("owner/model")
    assert (source.path / DENSE / weights).is_symlink()
    assert source.digest == locate(str(folder)).digest
    # A link of the snapshot that leads elsewhere was not made by the hub's client.
    (source.path / "config.json").unlink()
    (source.path / "config.json").symlink_to(folder / "config.json")
    with pytest.raises(InputError, match=r"config\.json points outside the model folder"):
        locate(str(source.path))


def test_what_loading_opens_is_in_the_digest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The libraries in Rust open tokenizer.json and the safetensors files unseen; those are told by the tests above."""
    for name in ("added_tokens.json", "special_tokens_map.json", "generation_config.json"):
        (folder / name).write_text("{}")
    for name in ("chat_template.jinja", "additional_chat_templates/more.jinja"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("a template")
    for name in ("README.md", "notes/readme.json", "onnx/model.onnx", "pytorch_model.bin", "own.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    covered: set[Path] = set()

    def digest(files: dict[str, Path]) -> str:
        covered.update(files.values())
        return "some digest"

    monkeypatch.setattr(sources, "tree_digest", digest)
    source = resolve(str(folder))
    sys.addaudithook(listen)
    OPENED.clear()
    load_encoder(source)
    opened = {path for path in map(Path, OPENED) if path.is_relative_to(folder)}
    assert folder / "config.json" in opened
    assert opened <= covered
    known = {"model.safetensors", "tokenizer.json", str(DENSE / "model.safetensors")}
    unread = {path.relative_to(folder).as_posix() for path in covered - opened} - known
    assert unread <= {"generation_config.json", "added_tokens.json", "special_tokens_map.json"}


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
def test_weights_in_several_files(weights: str, folder: Path, tmp_path: Path) -> None:
    before = vectors(folder)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names, parts = sorted(tensors), {}
    for number, chosen in enumerate((names[:5], names[5:])):
        file = f"part-{number}{Path(weights).suffix}"
        save = torch.save if file.endswith(".bin") else save_file
        save({name: tensors[name] for name in chosen}, folder / file)
        parts |= dict.fromkeys(chosen, file)
    index = folder / f"{weights}.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": parts}))
    np.testing.assert_allclose(vectors(folder), before, atol=1e-6)
    digest, second = resolve(str(folder)).digest, folder / f"part-1{Path(weights).suffix}"
    second.write_bytes(second.read_bytes()[:-4] + b"\x00\x00\x00\x01")
    assert resolve(str(folder)).digest != digest
    second.rename(tmp_path / "outside")
    with pytest.raises(InputError, match=f"{second.name} is missing; {index.name} lists it"):
        resolve(str(folder))
    for odd in ("../outside", str(tmp_path / "outside"), "", ".", "..", 3, None, "a\0b", "\ud800", "x" * 300):
        index.write_text(json.dumps({"weight_map": parts | {names[-1]: odd}}))
        with pytest.raises(InputError, match="does not list files in this folder"):
            resolve(str(folder))


def test_weights_of_a_distributed_training_are_refused(folder: Path) -> None:
    """transformers would read them before all others."""
    shutil.copy(folder / "model.safetensors", folder / "shard-00001-model-00001-of-00001.safetensors")
    with pytest.raises(InputError, match="distributed training") as caught:
        resolve(str(folder))
    assert caught.value.hint


def test_weights_that_are_not_read_are_not_in_the_digest(folder: Path) -> None:
    digest = resolve(str(folder)).digest
    (folder / "pytorch_model.bin").write_bytes(b"x")
    (folder / "model.fp16.safetensors").write_bytes(b"x")
    (folder / DENSE / "pytorch_model.bin").write_bytes(b"x")
    assert resolve(str(folder)).digest == digest


def test_code_is_in_the_digest_of_a_model_that_asks_for_it(tiny_model: Path, tmp_path: Path) -> None:
    folder = with_code(tiny_model, tmp_path / "model", tmp_path / "ran")
    assert locate(str(folder)).digest == locate(str(tiny_model)).digest
    ask_for_code(folder, "plain")
    digest = locate(str(folder)).digest
    (folder / "own.py").write_text("other code")
    assert locate(str(folder)).digest != digest


def test_a_vocabulary_elsewhere_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    """Without tokenizer.json, some tokenizers read the file that their settings name."""
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    (folder / "tokenizer.json").rename(tmp_path / "tokenizer.1.0.0.json")
    (folder / "vocab.txt").write_text("[UNK]\n[PAD]\n[CLS]\n[SEP]\n[MASK]\n")
    settings = folder / "tokenizer_config.json"
    before = json.loads(settings.read_text())
    for odd in ({"vocab_file": str(tmp_path / "tokenizer.1.0.0.json")}, {"merges_file": "../tokenizer.1.0.0.json"}):
        settings.write_text(json.dumps(before | odd))
        with pytest.raises(InputError, match="points outside the model folder"):
            load_model(folder)
    (tmp_path / "tokenizer.1.0.0.json").rename(folder / "tokenizer.json")
    (tmp_path / "tokenizer.1.0.0.json").write_text("{}")
    settings.write_text(json.dumps(before | {"fast_tokenizer_files": ["../tokenizer.1.0.0.json"]}))
    with pytest.raises(InputError, match="points outside the model folder"):
        load_model(folder)
    # Where it was made, on another machine.
    settings.write_text(json.dumps(before | {"vocab_file": "/root/nowhere/vocab.txt"}))
    assert load_model(folder).dimension == 32


@pytest.mark.parametrize("modules", [True, False])
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("CrossEncoder", "is a cross-encoder, which scores pairs of texts"),
        ("SparseEncoder", "is a sparse encoder"),
        ("ColBERT", "is a multi-vector model"),
        ("SentenceTransformer", ""),
    ],
)
def test_other_models_of_sentence_transformers_are_refused(
    kind: str, message: str, modules: bool, folder: Path
) -> None:
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"model_type": kind}))
    if not modules:
        (folder / "modules.json").unlink()
    if not message:
        assert load_model(folder).dimension == (8 if modules else 32)
        return
    with pytest.raises(InputError, match=message) as caught:
        resolve(str(folder))
    assert caught.value.hint == "name a model with one vector for each text, as SentenceTransformer loads it"


def test_a_cross_encoder_as_sentence_transformers_saves_it_is_refused(folder: Path, tmp_path: Path) -> None:
    """It lists a Transformer and no Pooling: its folder was said to be damaged."""
    from sentence_transformers import CrossEncoder
    from transformers import BertForSequenceClassification

    encoder = load_model(folder)
    model = BertForSequenceClassification(encoder.transformer.config)
    for part in (model, encoder.tokenizer):
        part.save_pretrained(tmp_path / "plain")
    CrossEncoder(str(tmp_path / "plain"), device="cpu", local_files_only=True).save_pretrained(str(tmp_path / "saved"))
    with pytest.raises(InputError, match="is a cross-encoder"):
        resolve(str(tmp_path / "saved"))
