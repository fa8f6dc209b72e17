"""What is told of a model before its vectors are computed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from listening import Listener
from tiny_models import load_model, make_plain, make_sentences, make_t5, make_tiny_model
from transformers import ConvBertConfig, ConvBertModel

from sentcompress.errors import InputError
from sentcompress.models.cautions import told_guess, told_padding
from sentcompress.models.sources import resolve
from sentcompress.stages import augment, compress, encode, eval_fidelity, teacher_embed
from sentcompress.store import WorkDirectory

GUESSED = "plain does not say how it is pooled (it has no modules.json): the mean of its token states is used"


@pytest.fixture
def texts(work: WorkDirectory, tmp_path: Path) -> Path:
    """Sentences, which are also in the table of the work directory."""
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{line}\n" for line in make_sentences(150)), encoding="utf-8")
    augment.run(augment.Params(inputs=(str(path),), wordnet=0, back_translate=0), work)
    return path


def test_a_guessed_pooling_is_told(work: WorkDirectory, texts: Path, tiny_model: Path, tmp_path: Path) -> None:
    plain, told = make_plain(tmp_path / "plain", tiny_model), Listener()
    teacher_embed.run(teacher_embed.Params(teacher=str(plain), dtype="float32"), work, told)
    encode.run(encode.Params(lines=str(texts), output=tmp_path / "a.npy", model=str(plain)), work, told)
    params = eval_fidelity.Params(text=(texts,), model=str(plain), compare=str(tiny_model), bootstrap=0)
    eval_fidelity.run(params, work, told)
    assert [warning.startswith(GUESSED) for warning in told.warnings].count(True) == 3
    told = Listener()
    asked = teacher_embed.Params(teacher=str(plain), dtype="float32", pooling="cls", name="cls")
    teacher_embed.run(asked, work, told)
    assert told.warnings == []


def test_a_pooling_that_files_or_the_name_choose_is_not_guessed(tiny_model: Path, tmp_path: Path) -> None:
    assert told_guess(resolve(str(tiny_model)), "it", "auto") == ""
    plain = make_plain(tmp_path / "plain", tiny_model)
    assert told_guess(resolve(str(plain)), "it", "auto") != ""
    shutil.move(plain, tmp_path / "simcse")
    assert told_guess(resolve(str(tmp_path / "simcse")), "it", "auto") == ""


def test_a_teacher_that_compares_by_inner_products_is_told(work: WorkDirectory, texts: Path, tmp_path: Path) -> None:
    """Such as multi-qa-mpnet-base-dot-v1: its student is compared with it by cosines."""
    for normalize, count in ((False, 1), (True, 0)):
        folder, told = make_tiny_model(tmp_path / f"model-{normalize}", normalize=normalize), Listener()
        (folder / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "dot"}')
        params = compress.Params(inputs=(str(texts),), teacher=str(folder), name=folder.name, dry_run=True)
        compress.run(params, work, told)
        assert [warning for warning in told.warnings if "by their dot similarity" in warning] == told.warnings[:count]


def make_convbert(folder: Path, model: Path) -> Path:
    """A ConvBERT with the tokenizer and the modules of another model."""
    shutil.copytree(model, folder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 32}
    tokens = len(load_model(model).tokenizer)
    ConvBertModel(ConvBertConfig(vocab_size=tokens, **sizes, initializer_range=0.5)).save_pretrained(folder)
    return folder


def test_vectors_that_depend_on_padding_are_told(
    work: WorkDirectory, texts: Path, tiny_model: Path, tmp_path: Path
) -> None:
    model, told = make_convbert(tmp_path / "model", tiny_model), Listener()
    teacher_embed.run(teacher_embed.Params(teacher=str(model), dtype="float32"), work, told)
    encode.run(encode.Params(lines=str(texts), output=tmp_path / "a.npy", model=str(model)), work, told)
    assert len(told.warnings) == 2
    assert all("(convbert) depend on the padding of their batch" in warning for warning in told.warnings)
    with pytest.raises(InputError, match="vectors of a convbert model depend on the padding of their batch"):
        compress.run(compress.Params(inputs=(str(texts),), teacher=str(model), time="1m"), work)
    assert not work.names("documents")


def test_vectors_of_other_models_do_not(tiny_model: Path, tmp_path: Path) -> None:
    assert told_padding(load_model(tiny_model), "it") == ""
    assert told_padding(load_model(make_t5(tmp_path)), "it") == ""
