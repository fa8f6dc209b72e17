"""Translation with nlpaug: the same text as nlpaug alone, in batches of similar length."""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from sentcompress.augmentations import neural_translation
from sentcompress.augmentations.neural_translation import DEFAULT_ROUTE, NeuralAugmenter, NeuralSpec, neural_spec
from sentcompress.errors import InputError
from sentcompress.extras import installing
from sentcompress.models import dtype_trial, sources
from sentcompress.models.sources import ModelSource, resolve

needs_sacremoses = pytest.mark.skipif(
    importlib.util.find_spec("sacremoses") is None, reason="sacremoses is not installed (the augment extra)"
)
WORDS = "a the dog cat runs sleeps here there".split()
# Of many lengths, in no order.
TEXTS = [" ".join(WORDS[(place + step) % 8] for step in range(1 + place * 7 % 13)) for place in range(40)]


@pytest.fixture(autouse=True)
def float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """No trial: on a tiny model it says nothing, and its answer may vary."""
    monkeypatch.setattr(dtype_trial, "dtype_candidates", lambda *_: ("float32",))


def test_the_default_models_are_nlpaug_s_own() -> None:
    from nlpaug.augmenter.word.back_translation import BackTranslationAug

    defaults = inspect.signature(BackTranslationAug).parameters
    assert tuple(defaults[name].default for name in ("from_model_name", "to_model_name")) == DEFAULT_ROUTE


def make_translator(folder: Path, seed: int = 0) -> Path:
    """A random BART with a word-level vocabulary: what it says makes no sense, but it says it every time."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

    words = ["<s>", "<pad>", "</s>", "<unk>", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>",
        model_max_length=32, model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    torch.manual_seed(seed)
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


def make_wmt19(folder: Path, langs: tuple[str, str]) -> Path:
    """A random model of the kind and with the files of facebook/wmt19."""
    from transformers import FSMTConfig, FSMTForConditionalGeneration

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["<s>", "<pad>", "</s>", "<unk>", *letters, *(f"{letter}</w>" for letter in letters)]
    torch.manual_seed(len(langs[0] + langs[1]) + ord(langs[0][0]))
    config = FSMTConfig(
        langs=list(langs), src_vocab_size=len(words), tgt_vocab_size=len(words), d_model=16, encoder_layers=1,
        decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=16,
        decoder_ffn_dim=16, max_position_embeddings=512, init_std=1.0, num_beams=2,
    )  # fmt: skip
    model = FSMTForConditionalGeneration(config)
    # The output layer is the decoder's table: nearly every state now points to the end of the sentence.
    model.model.decoder.embed_tokens.weight.data[2] *= 3
    model.save_pretrained(folder)
    vocabulary = json.dumps({word: place for place, word in enumerate(words)})
    (folder / "vocab-src.json").write_text(vocabulary)
    (folder / "vocab-tgt.json").write_text(vocabulary)
    (folder / "merges.txt").write_text("t h 10\n")
    settings = {"langs": list(langs), "tokenizer_class": "FSMTTokenizer", "model_max_length": 64}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def by_nlpaug(route: tuple[Path, Path], texts: list[str]) -> list[str]:
    """What nlpaug itself makes of them, one at a time, without any padding."""
    from nlpaug.augmenter.word.back_translation import BackTranslationAug

    BackTranslationAug.clear_cache()
    augmenter = BackTranslationAug(*map(str, route), device="cpu")
    made = [" ".join(augmenter.augment([text])[0].split()) or text for text in texts]
    BackTranslationAug.clear_cache()
    return made


def test_texts_come_back_in_order_and_as_from_nlpaug_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    route = (make_translator(tmp_path / "there"), make_translator(tmp_path / "back", seed=1))
    monkeypatch.setattr(neural_translation, "BATCH_TOKENS", {"cpu": 24, "cuda": 24})
    spec = neural_spec([(str(route[0]), str(route[1]))])
    texts = TEXTS[:14]  # of all lengths
    new = spec.load().augment(texts, 0, 1)
    assert new == by_nlpaug(route, texts)
    assert len(set(new)) > 3
    assert spec.load().augment([], 0, 1) == []
    assert set(spec.describe()["models"]) == {str(path) for path in route}


def test_batches_are_bounded_by_tokens_and_hold_little_padding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neural_translation, "BATCH_TOKENS", {"cpu": 24, "cuda": 24})
    name = str(make_translator(tmp_path / "translator"))
    augmenter = neural_spec([(name, name)]).load()
    assert isinstance(augmenter, NeuralAugmenter)
    (pair,) = augmenter._models
    seen: list[Any] = []
    honest = pair.src_model.generate

    def generate(**given: Any) -> Any:
        seen.append(given["attention_mask"])
        return honest(**given)

    monkeypatch.setattr(pair.src_model, "generate", generate)
    augmenter.augment(TEXTS, 0, 1)
    assert sum(len(mask) for mask in seen) == len(TEXTS)
    assert all(mask.numel() <= 24 for mask in seen)
    real, padded = sum(int(mask.sum()) for mask in seen), sum(mask.numel() for mask in seen)
    # Padded to the longest of the call, they would be half as many tokens again.
    assert padded < 1.05 * real < 0.7 * len(TEXTS) * max(mask.shape[1] for mask in seen)


@needs_sacremoses
def test_models_of_the_kind_of_wmt19_run(tmp_path: Path) -> None:
    route = (make_wmt19(tmp_path / "en-de", ("en", "de")), make_wmt19(tmp_path / "de-en", ("de", "en")))
    spec = neural_spec([(str(route[0]), str(route[1]))])
    texts = ["the dog runs here", "a cat", "a dog sleeps there, and the cat runs", "dog!"]
    assert spec.load().augment(texts, 0, 1) == by_nlpaug(route, texts)


def test_the_number_format_is_measured_on_a_cpu_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if torch.cuda.is_available():
        pytest.skip("a GPU computes in bfloat16 without a trial")
    from transformers import BartForConditionalGeneration

    name = str(make_translator(tmp_path / "translator"))
    spec = neural_spec([(name, name)])
    monkeypatch.setattr(dtype_trial, "dtype_candidates", lambda *_: ("float32", "bfloat16"))
    speedup = 2.5
    timed: list[torch.dtype] = []
    honest = BartForConditionalGeneration.generate

    def generate(self: Any, **given: Any) -> Any:
        timed.append(self.dtype)
        return honest(self, **given)

    def measure(float32: Any, bfloat16: Any) -> dtype_trial.Speedup:
        assert len(float32()) == len(bfloat16()) == 2
        return dtype_trial.Speedup([speedup] * 6)

    monkeypatch.setattr(BartForConditionalGeneration, "generate", generate)
    monkeypatch.setattr(dtype_trial, "measure", measure)
    fast = spec.load()
    assert isinstance(fast, NeuralAugmenter)
    assert timed == [torch.float32, torch.bfloat16]
    assert fast.note.startswith("bfloat16 on cpu (measured: bfloat16 translates 2.50 times as fast as float32")
    assert {model.dtype for pair in fast._models for model in (pair.src_model, pair.tgt_model)} == {torch.bfloat16}
    assert len(fast.augment(TEXTS, 0, 1)) == len(TEXTS)
    speedup = 0.5
    slow = spec.load()
    assert isinstance(slow, NeuralAugmenter)
    assert slow.note.startswith("float32 on cpu")
    # Not the models that the first one holds in bfloat16.
    assert {model.dtype for pair in slow._models for model in (pair.src_model, pair.tgt_model)} == {torch.float32}


def test_a_missing_model_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no config\.json"):
        neural_spec([(str(tmp_path / "empty"),) * 2])
    import huggingface_hub

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    monkeypatch.setattr(sources, "ask_hub", lambda *_: None)
    with pytest.raises(InputError, match="translator: owner/en-de cannot be fetched from the hub") as caught:
        neural_spec([("owner/en-de", "owner/de-en")])
    assert "`translator` apertium" in str(caught.value.hint)


def test_a_missing_package_is_told_before_a_model_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sacremoses", None)

    def looked(name: str) -> ModelSource:
        raise AssertionError(name)

    with monkeypatch.context() as patch:
        patch.setattr(neural_translation, "resolve", looked)
        with pytest.raises(InputError, match=r"^sacremoses is not installed$") as caught:
            neural_spec([DEFAULT_ROUTE])
    assert caught.value.hint == f"run: {installing('sacremoses')}"
    folder = make_wmt19(tmp_path / "en-de", ("en", "de"))
    with pytest.raises(InputError, match=r"^sacremoses is not installed$"):
        neural_spec([(str(folder), str(folder))])


def test_models_that_cannot_be_loaded_are_a_clear_error(tmp_path: Path) -> None:
    folder = make_translator(tmp_path / "translator")
    source = resolve(str(folder))
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"the translators .* need|cannot load the translators"):
        NeuralSpec(((source, source),)).load()


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
    with pytest.raises(InputError, match="code"):
        neural_spec([(str(translator),) * 2])
    # Also if that is not noticed, nothing runs.
    source = ModelSource(str(translator), translator, "0" * 64)
    with pytest.raises(InputError, match="cannot load the translators"):
        NeuralSpec(((source, source),)).load()
    assert not marker.exists()
