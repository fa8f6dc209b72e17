"""The encoder's tokens of texts that are far longer than it reads."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sentcompress.models import encoder as module
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import resolve


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("long", [50, 200, 700])
def test_a_long_text_has_the_tokens_of_its_beginning(
    tiny_model: Path, sentences: list[str], monkeypatch: pytest.MonkeyPatch, side: str, long: int
) -> None:
    encoder = load_encoder(resolve(str(tiny_model)))
    encoder.tokenizer.truncation_side = side
    texts = [" ".join(sentences), "x" * 1000 + " " + sentences[0], " " * 1000 + sentences[0], "short", "." * 900]
    expected = encoder.tokenize(texts)
    monkeypatch.setattr(module, "_LONG_TEXT", long)
    monkeypatch.setattr(module, "_MARGIN", 8)
    assert encoder.tokenize(texts) == expected


def test_megabytes_of_text_are_tokenized_soon(tiny_model: Path) -> None:
    encoder = load_encoder(resolve(str(tiny_model)))
    started = time.perf_counter()
    [found] = encoder.tokenize(["word salad " * 1_400_000])
    assert len(found) == encoder.text.max_length
    assert time.perf_counter() - started < 5
