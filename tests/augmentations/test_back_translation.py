from __future__ import annotations

from pathlib import Path

import pytest

from sentcompress.augmentations import back_translation
from sentcompress.augmentations.apertium import ApertiumSpec
from sentcompress.augmentations.back_translation import back_translation_spec, check_translators
from sentcompress.augmentations.neural_translation import DEFAULT_ROUTE, NeuralSpec
from sentcompress.errors import InputError


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A machine that has what the test says: pivots of apertium, and models in the cache."""
    there: dict[str, object] = {"pivots": (), "cached": False}
    monkeypatch.setattr(back_translation, "find_pivots", lambda: there["pivots"])
    monkeypatch.setattr(back_translation, "check_apertium", lambda pivots: None)
    monkeypatch.setattr(back_translation, "is_cached", lambda name: there["cached"])
    return there


def test_auto_takes_apertium_then_cached_models(machine: dict[str, object]) -> None:
    machine.update(pivots=("eng-cat", "eng-spa"), cached=True)
    assert back_translation_spec([], 1) == ApertiumSpec(("eng-cat",))
    assert back_translation_spec(["auto"], 2) == ApertiumSpec(("eng-cat", "eng-spa"))
    machine.update(pivots=())
    assert back_translation_spec([], 1) == NeuralSpec((DEFAULT_ROUTE,))


def test_without_any_translator_the_error_names_one(machine: dict[str, object]) -> None:
    with pytest.raises(InputError, match="no translator") as caught:
        back_translation_spec([], 1)
    assert "apertium-eng-spa" in str(caught.value.hint)
    with pytest.raises(InputError, match="apertium is not installed"):
        back_translation_spec(["apertium"], 1)


def test_more_copies_than_languages_is_an_error(machine: dict[str, object]) -> None:
    machine.update(pivots=("eng-spa",))
    with pytest.raises(InputError, match="2 languages, found 1 apertium language pair"):
        back_translation_spec([], 2)
    with pytest.raises(InputError, match="2 languages"):
        back_translation_spec(["a/b,b/a"], 2)


def test_models_are_given_in_pairs(machine: dict[str, object]) -> None:
    assert back_translation_spec(["a/b,b/a", "nlpaug"], 2) == NeuralSpec((("a/b", "b/a"), DEFAULT_ROUTE))
    assert check_translators(["a/b"])
    assert check_translators(["apertium", "nlpaug"])
    assert not check_translators(["nlpaug"])


def make_translator(folder: Path) -> Path:
    """A random BART with a word-level vocabulary: what it says makes no sense, but it says it every time."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", *"a the dog cat runs sleeps here there".split()]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
        model_max_length=32, model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=512,
        init_std=1.0, bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2,
    )  # fmt: skip
    model = BartForConditionalGeneration(config)
    # nlpaug generates up to 300 tokens; this makes it stop soon
    model.final_logits_bias[0, 2] = 20.0
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def test_nlpaugs_translator_runs_with_todays_transformers(tmp_path: Path) -> None:
    name = str(make_translator(tmp_path / "translator"))
    spec = NeuralSpec(((name, name),), batch_size=2)
    texts = ["the dog runs here", "a cat", "the cat sleeps", "dog"]
    new = spec.load().augment(texts, 0, 1)
    assert len(new) == 4
    assert new == spec.load().augment(texts, 0, 1)
    assert set(spec.describe()["revisions"]) == {name}


def test_models_that_cannot_be_loaded_are_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="cannot load the translators"):
        NeuralSpec(((str(tmp_path / "empty"),) * 2,)).load()


@pytest.mark.parametrize("key", ["auto_map", "auto\\u005fmap"])
def test_the_code_of_a_translator_is_neither_run_nor_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    translator = make_translator(tmp_path / "translator")
    marker = tmp_path / "it ran"
    (translator / "evil.py").write_text(f"from pathlib import Path\nPath({str(marker)!r}).touch()\n")
    for name, classes in (
        ("config.json", '{"AutoConfig": "evil.C", "AutoModelForSeq2SeqLM": "evil.M"}'),
        ("tokenizer_config.json", '{"AutoTokenizer": ["evil.T", "evil.T"]}'),
    ):
        path = translator / name
        path.write_text(path.read_text().replace("{", f'{{"{key}": {classes},', 1))
    config = translator / "config.json"
    config.write_text(config.read_text().replace('"bart"', '"nobody_knows_this"'))
    monkeypatch.setattr("builtins.input", lambda *_: "y")  # a question would be answered with yes
    with pytest.raises(InputError, match="cannot load the translators"):
        NeuralSpec(((str(translator),) * 2,)).load()
    assert not marker.exists()
