"""Words of several scripts, and hashes of texts by their words."""

from __future__ import annotations

import unicodedata

import pytest

from sentcompress.passages.words import mark, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("الكِتَاب، قرأه", ["الكِتَاب", "قرأه"]),
        ("l’été d'Émile, ça_va", ["l’été", "d'émile", "ça", "va"]),
        ("Thai: ที่นี่", ["thai", "ที่นี่"]),
        ("\U00011328\U0001133e \U0001f600", ["\U00011328\U0001133e"]),
        ("ef\u00adfi\u00adcient of\ufb01ce", ["efficient", "office"]),
        ("snake_case ² 1️⃣ ❤️ – naïve", ["snake", "case", "²", "1", "naïve"]),
    ],
)
def test_words_of_any_script_are_whole(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_the_same_text_has_the_same_words_however_it_is_encoded() -> None:
    composed = "Résumé d’été, ángström"
    assert words_of(unicodedata.normalize("NFD", composed)) == words_of(composed) == ["résumé", "d’été", "ángström"]
    assert mark(unicodedata.normalize("NFD", composed), 1) == mark(composed, 1)


def test_texts_that_differ_in_a_vowel_differ() -> None:
    assert mark("की", 0) != mark("का", 0)
