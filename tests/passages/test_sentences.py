from __future__ import annotations

import pytest

from sentcompress.passages.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. A. Smith et al. 2020 wrote it. He left.", ["Dr. A. Smith et al. 2020 wrote it.", "He left."]),
        ("It cost $3.50 (approx. 3 euros). Then?", ["It cost $3.50 (approx. 3 euros).", "Then?"]),
        ('He said "Go." She went.', ['He said "Go."', "She went."]),
        ("version 1.2. of it. and more", ["version 1.2. of it. and more"]),
        ("A heading\n\nA text\nof two lines.", ["A heading", "A text of two lines."]),
        ("\u6211\u4eec\u3002\u4f60\u4eec\uff01\u597d", ["\u6211\u4eec\u3002", "\u4f60\u4eec\uff01", "\u597d"]),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_a_long_paragraph_takes_no_long_time() -> None:
    assert len(split_sentences("A dog ran. " * 50_000)) == 50_000
    assert len(split_sentences("Wait" + "." * 100_000 + "go. " + "?!" * 50_000)) == 1
