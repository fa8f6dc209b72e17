"""Faulty model folders: each ends in an error that names the folder and has a hint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import load_model

from sentcompress.errors import InputError
from sentcompress.models.encoder import Dense
from sentcompress.models.layout import save_encoder
from sentcompress.models.transformer_encoder import TransformerEncoder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A model with token weights and a Dense layer."""
    encoder, folder = load_model(tiny_model), tmp_path_factory.mktemp("whole") / "model"
    weights = torch.linspace(0.1, 1, len(encoder.tokenizer))
    save_encoder(TransformerEncoder(**encoder.parts() | {"dense": [Dense(32, 8)], "token_weights": weights}), folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "model")


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values))


def change_tensors(path: Path, edit: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(path)
    edit(tensors)
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_attention_heads": "x"}, "cannot be loaded: .*num_attention_heads.* expected int"),
        ({"num_attention_heads": 0}, "cannot be loaded"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers cannot be 1000000000"),
        ({"num_hidden_layers": 50}, "lack .* tensors of its architecture"),
        ({"num_labels": 10**9}, "num_labels cannot be 1000000000"),
        ({"hidden_size": 10**8}, "asks for [0-9]+ parameters, far more than its weight files have"),
        ({"vocab_size": 10**9}, "asks for [0-9]+ parameters, far more than its weight files have"),
        ({"max_position_embeddings": 10**15}, "max_position_embeddings cannot be"),
        ({"max_position_embeddings": 10**9}, "asks for [0-9]+ parameters, far more than its weight files have"),
        ({"intermediate_size": -1}, "cannot be loaded"),
        ({"hidden_act": "nonsense"}, "cannot be loaded"),
        ({"hidden_act": []}, "cannot be loaded"),
        ({"model_type": "nonsense"}, "cannot be loaded"),
        ({"model_type": "gpt2"}, "cannot be loaded|lack .* tensors"),
        ({"model_type": "clip"}, "cannot be loaded|lack .* tensors|asks for"),
        ({"model_type": []}, "cannot be loaded"),
        ({"layer_norm_eps": "x"}, "cannot be loaded"),
        ({"chunk_size_feed_forward": 7}, "cannot be used"),
        ({"id2label": [1]}, "cannot be loaded"),
        ({"dtype": "nonsense"}, "cannot be loaded"),
    ],
)
def test_odd_configurations(values: dict[str, Any], message: str, folder: Path) -> None:
    change(folder / "config.json", **values)
    with pytest.raises(InputError, match=message) as caught:
        load_model(folder)
    assert caught.value.hint


@pytest.mark.parametrize(
    "model", [3, [], {"type": "WordPiece"}, {"type": "Nonsense", "vocab": {}}, {"vocab": {"a": "b"}}]
)
def test_a_tokenizer_of_a_variant_that_nobody_knows(model: Any, folder: Path) -> None:
    change(folder / "tokenizer.json", model=model)
    with pytest.raises(InputError, match="cannot be loaded") as caught:
        load_model(folder)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["{}", "[]", "null", "{", "", "3"])
@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_odd_tokenizer_files(name: str, text: str, folder: Path) -> None:
    (folder / name).write_text(text)
    if (name, text) == ("tokenizer_config.json", "{}"):
        assert load_model(folder).dimension == 8
        return
    with pytest.raises(InputError, match=r"tokenizer|cannot be loaded") as caught:
        load_model(folder)
    assert caught.value.message


def test_a_vocabulary_without_its_unknown_token(folder: Path) -> None:
    encoder = load_model(folder)
    inner = json.loads((folder / "tokenizer.json").read_text())
    del inner["model"]["vocab"]["[UNK]"]
    inner["added_tokens"] = [token for token in inner["added_tokens"] if token["content"] != "[UNK]"]
    encoder.tokenizer.backend_tokenizer.model = type(encoder.tokenizer.backend_tokenizer.model)(
        vocab=inner["model"]["vocab"], unk_token="[nowhere]"
    )
    with pytest.raises(InputError, match=r"the tokenizer cannot read a text: .*UNK") as caught:
        encoder.tokenize(["a dog", "xylophone"])
    assert caught.value.hint


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "3", "{", '{"default_prompt_name": 3}', '{"prompts": [1]}'])
def test_odd_settings_of_sentence_transformers(text: str, folder: Path) -> None:
    (folder / "config_sentence_transformers.json").write_text(text)
    with pytest.raises(InputError, match=r"config_sentence_transformers\.json"):
        load_model(folder)


def test_a_prompt_that_is_no_text(folder: Path) -> None:
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps({"prompts": {"query": {"a": 1}}, "default_prompt_name": "query"}))
    with pytest.raises(InputError, match="the prompt 'query' is not a string"):
        load_model(folder)


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "3", "{", "[" * 100_000, b"\xff\xfe{\x00}\x00", b"\x80"])
def test_odd_settings_of_texts(text: str | bytes, folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=r"sentence_bert_config\.json"):
        load_model(folder)


@pytest.mark.parametrize("limit", [-5, 0, "x", 1.5, True, [3], {}])
def test_odd_limits_of_texts(limit: Any, folder: Path) -> None:
    change(folder / "sentence_bert_config.json", max_seq_length=limit)
    with pytest.raises(InputError, match="max_seq_length must be a positive integer"):
        load_model(folder)


@pytest.mark.parametrize("limit", [1, 2])
def test_a_limit_that_leaves_no_room_for_words(limit: int, folder: Path) -> None:
    change(folder / "sentence_bert_config.json", max_seq_length=limit)
    message = f"maximum length of {limit} tokens leaves no room for words: 2 are special tokens"
    with pytest.raises(InputError, match=message):
        load_model(folder)


@pytest.mark.parametrize("limit", [65, 10**6, 10**30, None])
def test_a_huge_limit_is_that_of_the_positions(limit: int | None, folder: Path) -> None:
    change(folder / "sentence_bert_config.json", max_seq_length=limit)
    change(folder / "tokenizer_config.json", model_max_length=10**30)
    assert load_model(folder).text.max_length == 64


@pytest.mark.parametrize("limit", ["x", 0, -1, float("nan")])
def test_an_odd_limit_of_the_tokenizer(limit: Any, folder: Path) -> None:
    change(folder / "sentence_bert_config.json", max_seq_length=None)
    change(folder / "tokenizer_config.json", model_max_length=limit)
    with pytest.raises(InputError, match="model_max_length must be a number above 0"):
        load_model(folder)


def test_lower_case_is_true_or_false(folder: Path) -> None:
    change(folder / "sentence_bert_config.json", do_lower_case="no")
    with pytest.raises(InputError, match="do_lower_case must be true or false, not 'no'"):
        load_model(folder)


def test_tokens_beyond_the_table(folder: Path) -> None:
    shutil.rmtree(folder / "1_WordWeights")
    listed = [entry for entry in json.loads((folder / "modules.json").read_text()) if entry["path"] != "1_WordWeights"]
    (folder / "modules.json").write_text(json.dumps(listed))
    inner = json.loads((folder / "tokenizer.json").read_text())
    inner["model"]["vocab"]["zebra"] = 900
    (folder / "tokenizer.json").write_text(json.dumps(inner))
    with pytest.raises(InputError, match=r"has the token id 900, but the model has only \d+ embeddings") as caught:
        load_model(folder)
    assert caught.value.hint


def test_a_special_token_beyond_the_table(folder: Path) -> None:
    """Its number stands apart from the vocabulary."""
    inner = json.loads((folder / "tokenizer.json").read_text())
    inner["post_processor"] = {"type": "BertProcessing", "sep": ["[SEP]", 5000], "cls": ["[CLS]", 2]}
    change(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    (folder / "tokenizer.json").write_text(json.dumps(inner))
    with pytest.raises(InputError, match="has the token id 5000"):
        load_model(folder)


@pytest.mark.parametrize("special", [True, False])
def test_a_special_token_without_an_embedding_is_read_as_other_text(special: bool, folder: Path) -> None:
    """EmbeddingGemma's tokenizer has one for images, the first after its table: the model was refused."""
    before = load_model(folder)
    rows, texts = before.table_size, ["a dog", "a <image> dog"]
    expected = before.tokenize(texts)
    inner = json.loads((folder / "tokenizer.json").read_text())
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    inner["added_tokens"].append({"id": rows, "content": "<image>", **added})
    (folder / "tokenizer.json").write_text(json.dumps(inner))
    if not special:
        with pytest.raises(InputError, match=f"has weights for {rows} tokens, the tokenizer has {rows + 1}"):
            load_model(folder)
        return
    encoder = load_model(folder)
    assert encoder.tokenize(texts) == expected
    save_encoder(encoder, folder.parent / "saved")
    assert load_model(folder.parent / "saved").tokenize(texts) == expected


@pytest.mark.parametrize(
    "values",
    [
        {"in_features": "x"},
        {"in_features": 0},
        {"in_features": -1},
        {"in_features": 10**12},
        {"out_features": 10**12},
        {"out_features": 7},
        {"in_features": True},
        {"in_features": 32.0},
        {"bias": "x"},
        {"bias": False},
        {"activation_function": {"a": 1}},
        {"module_input_name": ["sentence_embedding"]},
    ],
)
def test_odd_dense_layers(values: dict[str, Any], folder: Path) -> None:
    change(folder / "3_Dense" / "config.json", **values)
    with pytest.raises(InputError, match="3_Dense"):
        load_model(folder)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '"x"', '{"pooling_mode": {"a": 1}}', '{"pooling_mode": [[]]}'])
def test_odd_pooling(text: str, folder: Path) -> None:
    (folder / "2_Pooling" / "config.json").write_text(text)
    with pytest.raises(InputError, match="2_Pooling"):
        load_model(folder)


def test_a_pooling_that_is_wider_than_the_dense_layer(folder: Path) -> None:
    shutil.rmtree(folder / "1_WordWeights")
    listed = [entry for entry in json.loads((folder / "modules.json").read_text()) if entry["path"] != "1_WordWeights"]
    (folder / "modules.json").write_text(json.dumps(listed))
    change(folder / "2_Pooling" / "config.json", pooling_mode=["mean", "cls"])
    with pytest.raises(InputError, match="a Dense layer for 32 dimensions after its pooling, which gives 64") as caught:
        load_model(folder)
    assert caught.value.hint


@pytest.mark.parametrize(
    "listed",
    [
        [],
        {},
        3,
        [3],
        [{"type": 3, "path": ""}],
        [{"type": "sentence_transformers.models.Transformer", "path": 3}],
        [{"type": "sentence_transformers.models.Pooling", "path": "2_Pooling"}],
        [{"type": "sentence_transformers.models.Transformer", "path": path} for path in ("", "2_Pooling")],
        [{"type": "sentence_transformers.models.Transformer", "path": "a\0b"}],
        [{"type": "sentence_transformers.models.Transformer", "path": "\ud800"}],
        [{"type": "sentence_transformers.models.Transformer", "path": "x" * 300}],
        [{"type": "sentence_transformers.models.Transformer", "path": "x/" * 3000}],
        [{"type": "sentence_transformers.models.Transformer", "path": "nowhere"}],
    ],
)
def test_odd_lists_of_modules(listed: Any, folder: Path) -> None:
    (folder / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(InputError, match=r"modules|model folder") as caught:
        load_model(folder)
    assert caught.value.hint


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize(
    ("file", "tensor", "named"),
    [
        ("model.safetensors", "embeddings.word_embeddings.weight", "transformer.embeddings.word_embeddings.weight"),
        ("model.safetensors", "encoder.layer.1.output.dense.bias", "transformer.encoder.layer.1.output.dense.bias"),
        ("3_Dense/model.safetensors", "linear.bias", "dense.0.linear.bias"),
        ("1_WordWeights/model.safetensors", "emb_layer.weight", "1_WordWeights has weights that are NaN or infinite"),
    ],
)
def test_weights_that_are_not_numbers(file: str, tensor: str, named: str, number: float, folder: Path) -> None:
    change_tensors(folder / file, lambda tensors: tensors[tensor].view(-1)[-1].fill_(number))
    with pytest.raises(InputError, match=named) as caught:
        load_model(folder)
    assert "download the model again" in str(caught.value.hint)


def test_weights_that_add_up_to_more_than_float32_holds_are_numbers(folder: Path) -> None:
    change_tensors(folder / "3_Dense" / "model.safetensors", lambda tensors: tensors["linear.bias"].fill_(1e38))
    encoder = load_model(folder)
    ids = torch.tensor(encoder.tokenize(["a dog"]))
    assert torch.isinf(encoder.dense_layers[0].linear.bias.sum())
    with torch.inference_mode():
        assert torch.isfinite(encoder.embed(ids, torch.ones_like(ids))).all()


def test_vectors_that_are_not_numbers(folder: Path) -> None:
    def edit(tensors: dict[str, torch.Tensor]) -> None:
        tensors["linear.weight"][::2], tensors["linear.weight"][1::2] = 3e38, -3e38

    change_tensors(folder / "3_Dense" / "model.safetensors", edit)
    change(folder / "3_Dense" / "config.json", activation_function="torch.nn.modules.linear.Identity")
    with pytest.raises(InputError, match="returns a vector with NaN or infinite values"):
        load_model(folder)


@pytest.mark.parametrize("file", ["model.safetensors", "3_Dense/model.safetensors", "1_WordWeights/model.safetensors"])
@pytest.mark.parametrize(
    "fault", ["cut", "cut in the header", "empty", "integers", "shapes", "names", "folder", "gone"]
)
def test_faults_of_weights(fault: str, file: str, folder: Path) -> None:
    path = folder / file
    if fault.startswith("cut"):
        path.write_bytes(path.read_bytes()[: 5 if "header" in fault else -7])
    elif fault == "empty":
        path.write_bytes(b"")
    elif fault == "integers":
        save_file({name: (100 * tensor).int() for name, tensor in load_file(path).items()}, path)
    elif fault == "shapes":
        save_file({name: tensor[..., None].repeat_interleave(2, -1) for name, tensor in load_file(path).items()}, path)
    elif fault == "names":
        save_file({f"other.{name}": tensor for name, tensor in load_file(path).items()}, path)
    else:
        path.unlink()
        if fault == "folder":
            path.mkdir()
    if (fault, file) == ("integers", "model.safetensors") or (fault in ("folder", "gone") and "1_Word" in file):
        # transformers turns integers into float32; weights of words stand in the configuration too.
        assert load_model(folder).dimension == 8
        return
    with pytest.raises(InputError) as caught:
        load_model(folder)
    assert caught.value.message


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_number_formats_are_read(dtype: torch.dtype, folder: Path) -> None:
    for file in ("model.safetensors", "3_Dense/model.safetensors", "1_WordWeights/model.safetensors"):
        save_file({name: tensor.to(dtype) for name, tensor in load_file(folder / file).items()}, folder / file)
    assert {parameter.dtype for parameter in load_model(folder).parameters()} == {torch.float32}


@pytest.mark.parametrize("values", [{"vocab": 3}, {"word_weights": []}, {"unknown_word_weight": "x"}, None])
def test_odd_weights_of_words(values: dict[str, Any] | None, folder: Path) -> None:
    """Older releases saved no tensor."""
    (folder / "1_WordWeights" / "model.safetensors").unlink()
    path = folder / "1_WordWeights" / "config.json"
    path.write_text("[]" if values is None else json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(InputError, match="weights for 0 tokens"):
        load_model(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "modules.json", "tokenizer_config.json", "2_Pooling/config.json", "3_Dense/config.json"]
)
def test_a_folder_in_place_of_a_file(name: str, folder: Path) -> None:
    (folder / name).unlink()
    (folder / name).mkdir()
    with pytest.raises(InputError, match="folder"):
        load_model(folder)
