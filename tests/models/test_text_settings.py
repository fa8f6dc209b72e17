"""Token ids against those of transformers' own calls."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import WORDS, make_sentences
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertTokenizerFast, PreTrainedTokenizerFast, T5Tokenizer

from sentcompress.models.text_settings import token_ids

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
PIECES = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -5.0)]


def trained(model: models.Model, trainer: trainers.Trainer, **parts: Any) -> PreTrainedTokenizerFast:
    inner = Tokenizer(model)
    for name, part in parts.items():
        setattr(inner, name, part)
    inner.train_from_iterator(make_sentences(200), trainer)
    named = {f"{name}_token": f"<{name}>" for name in ("pad", "unk", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token="<s>", eos_token="</s>", **named)


def wordpiece(**settings: Any) -> BertTokenizerFast:
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    return BertTokenizerFast(vocab={word: place for place, word in enumerate(dict.fromkeys(words))}, **settings)


def byte_level() -> PreTrainedTokenizerFast:
    """BPE of bytes, as in RoBERTa."""
    return trained(
        models.BPE(unk_token="<unk>"),
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        ),
        pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True),
        post_processor=processors.RobertaProcessing(("</s>", 2), ("<s>", 0)),
    )


def byte_fallback() -> PreTrainedTokenizerFast:
    """BPE of characters without pre-tokenisation, with bytes for unknown ones, as in Llama."""
    found = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    return trained(
        models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True),
        trainers.BpeTrainer(vocab_size=600, special_tokens=found),
        normalizer=normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]),
        post_processor=processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)]),
        decoder=decoders.ByteFallback(),
    )


def unigram() -> PreTrainedTokenizerFast:
    """Unigram with NFKC, as in XLM-RoBERTa."""
    return trained(
        models.Unigram(),
        trainers.UnigramTrainer(vocab_size=300, special_tokens=SPECIAL, unk_token="<unk>"),
        normalizer=normalizers.NFKC(),
        pre_tokenizer=pre_tokenizers.Metaspace(),
        post_processor=processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]),
    )


def t5() -> T5Tokenizer:
    letters = [(letter, -6.0) for letter in "abcdefghijklmnopqrstuvwxyz.,"]
    return T5Tokenizer(vocab=[*PIECES, *((f"\u2581{word}", -3.0) for word in WORDS), *letters], extra_ids=2)


def left_over() -> BertTokenizerFast:
    """As in all-MiniLM-L6-v2, whose tokenizer.json truncates and pads."""
    tokenizer = wordpiece()
    tokenizer.backend_tokenizer.enable_truncation(4, stride=1, strategy="only_first", direction="left")
    tokenizer.backend_tokenizer.enable_padding(length=30, pad_to_multiple_of=8)
    return tokenizer


def added() -> BertTokenizerFast:
    tokenizer = wordpiece()
    tokenizer.add_tokens([AddedToken("dog house", lstrip=True), AddedToken("\u732b", normalized=False)])
    return tokenizer


def without_special() -> PreTrainedTokenizerFast:
    inner = Tokenizer(models.WordLevel({"<unk>": 0, **{word: place for place, word in enumerate(WORDS, 1)}}, "<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")


KINDS: dict[str, Callable[[], Any]] = {
    "WordPiece": wordpiece,
    "WordPiece, accents": lambda: wordpiece(do_lower_case=False, tokenize_chinese_chars=False),
    "byte-level BPE": byte_level,
    "BPE with bytes": byte_fallback,
    "Unigram": unigram,
    "T5": t5,
    "words": without_special,
    "left over": left_over,
    "added tokens": added,
    "split special tokens": lambda: wordpiece(split_special_tokens=True),
}
made = cache(lambda kind: KINDS[kind]())

odd = st.sampled_from(
    [
        *("", " ", "\n\t", "\0", "[CLS]", "[MASK]", "<s>", "</s>", "<unk>", "<extra_id_0>", "\u2581", "dog house"),
        *("\u732b", "na\u00efve", "e\u0301", "\ufb01", "\u200d", "\U0001f469\u200d\U0001f4bb", "\u0634\u0645\u0633"),
        *("x" * 300, "the dog " * 2000, "." * 1000, "\ufffd", "\U0010ffff", "dogs", "DOG", "\ufeff", "\xad"),
    ]
)
words = st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join)
texts = st.lists(words | odd | st.text(max_size=40) | st.lists(odd, max_size=3).map("".join), min_size=1, max_size=6)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(texts=texts, side=st.sampled_from(["right", "left"]), limit=st.none() | st.integers(3, 40))
def test_ids_and_the_state_after_them_are_those_of_transformers(
    kind: str, texts: list[str], side: str, limit: int | None
) -> None:
    tokenizer, other = made(kind), deepcopy(made(kind))
    for one in (tokenizer, other):
        one.truncation_side = side
    by_transformers: list[object] = []
    convert = tokenizer._convert_encoding
    tokenizer._convert_encoding = lambda encoding, **how: (by_transformers.append(encoding), convert(encoding, **how))[
        1
    ]
    try:
        found = token_ids(tokenizer, texts, max_length=limit)
    finally:
        del tokenizer._convert_encoding
    assert found == other(texts, truncation=limit is not None, max_length=limit)["input_ids"]
    assert len(by_transformers) == 1, "the others are encoded by the backend alone"
    assert tokenizer.backend_tokenizer.to_str() == other.backend_tokenizer.to_str()
    assert tokenizer.backend_tokenizer.encode_special_tokens == other.backend_tokenizer.encode_special_tokens


class Marking(BertTokenizerFast):
    """A tokenizer with code of its own."""

    def _encode_plus(self, text: list[str], **how: Any) -> Any:
        return super()._encode_plus([f"the {one}" for one in text], **how)


class Reversing(BertTokenizerFast):
    def _convert_encoding(self, encoding: Any, **how: Any) -> Any:
        found, encodings = super()._convert_encoding(encoding, **how)
        return {key: [row[::-1] for row in rows] for key, rows in found.items()}, encodings


class Calling(BertTokenizerFast):
    def __call__(self, text: list[str], **how: Any) -> Any:
        return super().__call__([one.replace("cat", "dog") for one in text], **how)


@pytest.mark.parametrize("kind", [Marking, Reversing, Calling])
def test_a_tokenizer_with_code_of_its_own_does_it_for_every_text(kind: type[BertTokenizerFast]) -> None:
    tokenizer = kind(vocab=wordpiece().get_vocab())
    given = ["a cat", "a cat sings", "a dog"]
    found = token_ids(tokenizer, given, max_length=8)
    assert found == tokenizer(given, truncation=True, max_length=8)["input_ids"]
    assert found != wordpiece()(given)["input_ids"]


def test_threads_with_limits_of_their_own() -> None:
    """Without a lock, transformers raises "Already borrowed" or truncates at the limit of another thread."""
    tokenizer, given = wordpiece(), make_sentences(300)
    limits = [4, 6, None] * 10
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda limit: token_ids(tokenizer, given, max_length=limit), limits))
    whole = found[2]
    assert found == [[ids if limit is None else [*ids[:-1][: limit - 1], 3] for ids in whole] for limit in limits]
