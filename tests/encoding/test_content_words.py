"""A text read twice: whole, and its content words alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sentcompress.encoding.content_words import ContentWords, SecondReading
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.models.encoder import Encoder

TEXTS = ["the dog runs in the garden .", "the , .", "a man reads a book", "the dog runs in the garden .", ""]
BARE = ["dog runs garden", "the , .", "man reads book", "dog runs garden", ""]


def content(encoder: Encoder) -> ContentWords:
    tokens = encoder.tokenizer.convert_tokens_to_ids(["the", "a", "in", ".", ","])
    return ContentWords(encoder, tokens)


def test_function_words_are_left_out_and_texts_of_them_alone_are_not(encoder: Encoder) -> None:
    assert content(encoder)(TEXTS) == encoder.tokenize(BARE)


def test_what_the_model_does_not_read_of_the_text_is_not_read_of_its_content_either(encoder: Encoder) -> None:
    long = "the dog " * 40 + "guitar"
    encoder.text = replace(encoder.text, max_length=10)
    assert len(content(encoder)([long])[0]) == 6  # four dogs, and the special tokens


@pytest.mark.parametrize("layers", [(), (1, 2)])
def test_the_two_vectors_are_added(encoder: Encoder, layers: tuple[int, ...]) -> None:
    whole = EncodeEngine(encoder, dtype="float32", layers=layers)
    bare = EncodeEngine(encoder, dtype="float32", tokenize=content(encoder))
    found = np.concatenate(list(SecondReading(whole, bare, 0.5).stream([TEXTS[:2], TEXTS[2:]])))
    first, second = whole.encode(TEXTS), EncodeEngine(encoder, dtype="float32").encode(BARE)
    expected = first[:, :32] + 0.5 * second
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(found[:, :32], expected, atol=1e-5)
    np.testing.assert_array_equal(found[:, 32:], first[:, 32:])
