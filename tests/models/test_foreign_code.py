"""Where a model may ask for code, in which files, by which keys; and that nothing is fetched while one is opened."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hub import serve_hub
from tiny_models import load_model

from sentcompress.commands import find_command
from sentcompress.commands.spelling import spelled_hint
from sentcompress.errors import InputError
from sentcompress.models.foreign_code import asks_for_code, nothing_fetched
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import ModelSource, locate, resolve

AUTO_MAP = {"AutoModel": "own.OwnModel"}


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    return shutil.copytree(tiny_model, tmp_path / "model")


def change(path: Path, **values: Any) -> None:
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**before, **values} if isinstance(before, dict) else [*before, values]))


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "tokenizer_config.json",
        "processor_config.json",
        "preprocessor_config.json",
        "video_preprocessor_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "generation_config.json",
        "sentence_bert_config.json",
        "sentence_xlnet_config.json",
        "config_sentence_transformers.json",
        "1_Pooling/config.json",
        "question_encoder_tokenizer/tokenizer_config.json",
        "custom_generate/config.json",
    ],
)
def test_every_file_of_settings_is_looked_at(name: str, folder: Path) -> None:
    assert asks_for_code(folder) is None
    change(folder / name, auto_map=AUTO_MAP)
    assert asks_for_code(folder) == f"{name}: auto_map"
    with pytest.raises(InputError, match=f"wants to run Python code that comes with it .{name}: auto_map"):
        resolve(str(folder))
    assert resolve(str(folder), trust_remote_code=True).path == folder
    with pytest.raises(InputError, match="wants to run Python code"):
        load_encoder(locate(str(folder)))


def test_a_command_that_runs_no_code_still_says_what_to_do(folder: Path) -> None:
    change(folder / "config.json", auto_map=AUTO_MAP)
    with pytest.raises(InputError) as refused:
        resolve(str(folder))
    told = "read that code first; if you trust it, pass --trust-remote-code, or choose another model"
    assert spelled_hint(refused.value.alternatives, find_command("encode").params) == told
    assert spelled_hint(refused.value.alternatives, find_command("compress").params) == "choose another model"


def test_a_list_of_modules_is_looked_at(folder: Path) -> None:
    listed = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*listed[:-1], listed[-1] | {"auto_map": AUTO_MAP}]))
    assert asks_for_code(folder) == "modules.json: auto_map"


@pytest.mark.parametrize(
    "settings",
    [
        {"attn_implementation": "owner/kernel"},
        {"_attn_implementation": "kernels-community/flash-attn@main:flash"},
        {"_attn_implementation": "flash_attention_2"},
        {"attn_implementation": {"": "eager", "text_config": "owner/kernel"}},
        {"text_config": {"_attn_implementation": "paged|owner/kernel"}},
        {"_experts_implementation": "sonicmoe"},
        {"use_kernels": True},
        {"kernel_config": {"kernel_mapping": {"RMSNorm": "owner/kernel:RMSNorm"}}},
        {"fusion_config": {"qkv": True}},
        {"custom_generate": "owner/generate"},
        {"trust_remote_code": True},
    ],
)
def test_every_way_to_ask_for_code_is_refused(settings: dict[str, Any], folder: Path) -> None:
    change(folder / "config.json", **settings)
    with pytest.raises(InputError, match=r"wants to run Python code that comes with it \(config\.json: ") as caught:
        resolve(str(folder))
    assert "`trust_remote_code`" in str(caught.value.hint)


def test_what_is_harmless_is_loaded(folder: Path) -> None:
    change(folder / "config.json", _attn_implementation=None, attn_implementation="sdpa", use_kernels=False)
    change(folder / "tokenizer_config.json", trust_remote_code=False)
    assert load_model(folder).dimension == 32


def test_words_of_a_vocabulary_ask_for_nothing(folder: Path) -> None:
    (folder / "vocab.json").write_text('{"auto_map": 7}')
    assert asks_for_code(folder) is None


def test_load_encoder_itself_refuses_code(folder: Path) -> None:
    change(folder / "config.json", auto_map=AUTO_MAP)
    with pytest.raises(InputError, match="wants to run Python code"):
        load_encoder(ModelSource("model", folder, "some digest"))


@pytest.mark.parametrize("trusted", [False, True])
def test_adapters_are_refused(trusted: bool, folder: Path) -> None:
    """transformers would fetch a base model, or add weights, where the package peft is installed."""
    change(folder / "adapter_config.json", base_model_name_or_path="owner/base", peft_type="LORA")
    with pytest.raises(InputError, match="holds an adapter") as caught:
        resolve(str(folder), trust_remote_code=trusted)
    assert "merge it" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("settings", "hint"),
    [
        ({"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}}, "use the float32 model"),
        ({"text_config": {"quantization_config": {"quant_method": "gptq"}}}, "use the float32 model"),
        ({"transformers_weights": "other.safetensors"}, "model.safetensors"),
    ],
)
def test_settings_that_change_which_weights_are_read_are_refused(
    settings: dict[str, Any], hint: str, folder: Path
) -> None:
    change(folder / "config.json", **settings)
    with pytest.raises(InputError, match=r"config\.json has the key ") as caught:
        load_encoder(resolve(str(folder), trust_remote_code=True), trust_remote_code=True)
    assert hint in str(caught.value.hint)


def test_no_hub_is_asked_while_a_model_is_opened(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with serve_hub({"owner/model": tiny_model}) as endpoint:
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)

        def fetch(folder: Path) -> str:
            return hf_hub_download("owner/model", "config.json", cache_dir=folder, endpoint=endpoint)

        with pytest.raises(LocalEntryNotFoundError), nothing_fetched():
            fetch(tmp_path / "inside")
        assert constants.HF_HUB_OFFLINE is False
        assert Path(fetch(tmp_path / "outside")).is_file()


def test_chat_templates_are_never_rendered(folder: Path) -> None:
    """They are loaded with the tokenizer, as text; a template that cannot even be parsed does no harm."""
    (folder / "chat_template.jinja").write_text("{% for %} {{ ''.__class__.__mro__ }}", encoding="utf-8")
    encoder = load_model(folder)
    assert len(encoder.tokenize(["a dog"])[0]) == 4
