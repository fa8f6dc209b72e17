"""Makes queries from the text of a passage."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sentcompress.augmentations.function_words import is_function_word
from sentcompress.corpora.documents_artifact import KEYWORDS, RARE, SPAN
from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.sentences import split_sentences
from sentcompress.passages.words import plain, words_of

SHORTEST_SPAN, LONGEST_SPAN = 4, 12
FEWEST_KEYWORDS, MOST_KEYWORDS = 2, 5
# A kind of short text that is no query of split-documents.
SENTENCE = "sentence"
# Words around a rare word.
FEWEST_AROUND, MOST_AROUND = 2, 6
# Keywords are drawn from this many times their number, by weight.
_POOL = 2
_PUNCTUATION = ".,;:!?…()[]{}<>\"'“”‘’«»|*"


def make_span(passage: str, frequencies: DocumentFrequencies, generator: random.Random) -> str:
    """4 to 12 consecutive words of one sentence; empty if no sentence is long enough."""
    sentences = [words for sentence in split_sentences(passage) if len(words := sentence.split()) >= SHORTEST_SPAN]
    if not sentences:
        return ""
    words = generator.choices(sentences, weights=[len(one) for one in sentences])[0]
    count = generator.randint(SHORTEST_SPAN, min(LONGEST_SPAN, len(words)))
    start = generator.randint(0, len(words) - count)
    return _as_query(words[start : start + count], generator)


def make_keywords(passage: str, frequencies: DocumentFrequencies, generator: random.Random) -> str:
    """2 to 5 words of high tf-idf in this collection, in the order in which they first occur."""
    counts = Counter(words_of(passage))
    weights = {word: n * frequencies.weight(word) for word, n in counts.items() if not is_function_word(word)}
    ranked = sorted(weights, key=lambda word: (-weights[word], word))
    count = generator.randint(FEWEST_KEYWORDS, MOST_KEYWORDS)
    pool = ranked[: _POOL * count]
    if len(pool) < FEWEST_KEYWORDS:
        return ""
    chosen = set(generator.sample(pool, min(count, len(pool))))
    return " ".join(word for word in counts if word in chosen)


def make_rare(passage: str, frequencies: DocumentFrequencies, generator: random.Random) -> str:
    """A word that few documents have, with 2 to 6 words around it from its sentence."""
    words = [word for word in set(words_of(passage)) if not is_function_word(word)]
    ranked = sorted(words, key=lambda word: (frequencies[word], word))
    if not ranked:
        return ""
    rare = generator.choice(ranked[:2])
    for sentence in split_sentences(passage):
        parts = sentence.split()
        place = next((number for number, part in enumerate(parts) if rare in words_of(part)), None)
        if place is not None:
            around = generator.randint(FEWEST_AROUND, MOST_AROUND)
            start = max(0, min(place - generator.randint(0, around), len(parts) - around - 1))
            return _as_query(parts[start : start + around + 1], generator)
    return ""


def make_sentence(passage: str, frequencies: DocumentFrequencies, generator: random.Random) -> str:
    """A sentence of at least 4 words, or the first, often a title, half of the time; empty if there is only one."""
    sentences = split_sentences(passage)
    if len(sentences) < 2:
        return ""
    if generator.random() < 0.5:
        return sentences[0]
    long = [sentence for sentence in sentences if len(sentence.split()) >= SHORTEST_SPAN]
    return generator.choice(long) if long else ""


MAKERS: Mapping[str, Callable[[str, DocumentFrequencies, random.Random], str]] = {
    SPAN: make_span,
    KEYWORDS: make_keywords,
    RARE: make_rare,
}
# What augment makes from long texts.
SHORT_TEXTS = {**MAKERS, SENTENCE: make_sentence}


def make_queries(
    passage: str, number: int, frequencies: DocumentFrequencies, seed: int, kinds: tuple[str, ...] = tuple(MAKERS)
) -> list[tuple[str, str]]:
    """Up to `number` distinct queries about a passage as (kind, text), which depend on the passage and the seed only.

    The kinds are taken in turn, from one that the seed chooses.
    """
    generator = random.Random(seed)
    first = generator.randrange(len(kinds))
    found: dict[str, str] = {}
    for turn in range(number):
        kind = kinds[(first + turn) % len(kinds)]
        text = SHORT_TEXTS[kind](passage, frequencies, generator)
        if text and text != passage:
            found.setdefault(text, kind)
    return [(kind, text) for text, kind in found.items()]


def _as_query(words: Sequence[str], generator: random.Random) -> str:
    """The words without punctuation around them and typesetting inside; half of the time in lower case, as if typed."""
    text = plain(" ".join(bare for word in words if (bare := word.strip(_PUNCTUATION))))
    return text.lower() if generator.random() < 0.5 else text
