"""Cut and unknown tokens against the tokenizer itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_models import load_model

from sentcompress.encoding.token_counts import TokenCounts, count_first, count_tokens


def test_lengths_limit_and_unknown_tokens(tiny_model: Path) -> None:
    encoder = load_model(tiny_model)
    texts = ["the cat", "the zebra in the cat", " ".join(["dog"] * 62), " ".join(["dog"] * 63), ""]
    counts = count_tokens(encoder.tokenizer, encoder.text, texts)
    assert counts.lengths.tolist() == [4, 7, 64, 65, 2]  # with [CLS] and [SEP]
    assert (counts.limit, counts.special, counts.unknown) == (64, 2, 1)
    assert counts.truncated_share == pytest.approx(1 / 5)
    assert counts.unknown_share == pytest.approx(1 / (2 + 5 + 62 + 63))
    # the model reads as many as it says
    assert [len(ids) for ids in encoder.tokenize(texts)] == [4, 7, 64, 64, 2]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["水火", "the zebra"], "75% of the tokens of the first 2 texts are unknown to the model"),
        (["the zebra", *["the cat in the dog"] * 2], None),
        ([""], None),
    ],
)
def test_texts_that_the_model_does_not_know_are_told(tiny_model: Path, texts: list[str], told: str | None) -> None:
    """Two texts in a script that the model lacks had the same vector, without a word."""
    encoder = load_model(tiny_model)
    counts = count_first(lambda some: count_tokens(encoder.tokenizer, encoder.text, some), texts)
    assert counts is not None
    assert (counts.told_unknown() or "").startswith(told or "")
    assert (counts.told_unknown() is None) == (told is None)


def test_shares_of_nothing_are_zero() -> None:
    counts = TokenCounts(np.array([2, 2]), 64, 0, 2)
    assert (counts.truncated_share, counts.unknown_share) == (0.0, 0.0)
    assert TokenCounts(np.zeros(0, np.int64), 64, 0, 2).truncated_share == 0.0
