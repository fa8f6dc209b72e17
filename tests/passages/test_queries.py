from __future__ import annotations

import random

from sentcompress.passages.frequencies import DocumentFrequencies
from sentcompress.passages.queries import make_keywords, make_queries, make_rare, make_span
from sentcompress.passages.words import words_of

PASSAGE = (
    "The committee met on Monday. Members of the committee (nine of them) discussed the zoning of the harbour, "
    "which had been delayed by the plesiosaur excavation."
)


def frequencies() -> DocumentFrequencies:
    found = DocumentFrequencies()
    for words in (PASSAGE, "The committee met.", "Members discussed the delay on Monday.", "The harbour of the town."):
        found.add(words_of(words))
    return found


def test_document_frequencies() -> None:
    found = frequencies()
    assert (found.documents, found["the"], found["committee"], found["harbour"], found["unseen"]) == (4, 4, 2, 2, 0)
    assert found.weight("the") == 0
    assert found.weight("plesiosaur") > found.weight("committee") > 0


def test_spans_are_neighbouring_words_of_one_sentence() -> None:
    plain = words_of(PASSAGE)
    for seed in range(50):
        span = make_span(PASSAGE, frequencies(), random.Random(seed))
        words = words_of(span)
        assert 4 <= len(words) <= 12
        assert any(plain[start : start + len(words)] == words for start in range(len(plain)))
        assert not {"monday", "members"} <= set(words)
    assert make_span("Too short.", frequencies(), random.Random(0)) == ""


def test_keywords_are_rare_words_in_the_order_of_the_text() -> None:
    plain = words_of(PASSAGE)
    for seed in range(50):
        words = make_keywords(PASSAGE, frequencies(), random.Random(seed)).split()
        assert 2 <= len(words) <= 5
        assert [plain.index(word) for word in words] == sorted(plain.index(word) for word in words)
        assert not {"the", "of", "which"} & set(words)
    assert make_keywords("It is the one.", frequencies(), random.Random(0)) == ""


def test_a_rare_word_comes_with_its_neighbours() -> None:
    for seed in range(50):
        words = words_of(make_rare(PASSAGE, frequencies(), random.Random(seed)))
        assert {"delayed", "excavation", "nine", "zoning", "plesiosaur"} & set(words)
        assert 2 <= len(words) <= 7


def test_queries_have_no_soft_hyphens() -> None:
    typeset = PASSAGE.replace("committee", "com\u00admit\u00adtee").replace("plesiosaur", "plesio\u00adsaur")
    for seed in range(20):
        assert make_queries(typeset, 6, frequencies(), seed) == make_queries(PASSAGE, 6, frequencies(), seed)


def test_queries_depend_on_the_seed_only_and_are_distinct() -> None:
    first = make_queries(PASSAGE, 6, frequencies(), 5)
    assert first == make_queries(PASSAGE, 6, frequencies(), 5) != make_queries(PASSAGE, 6, frequencies(), 6)
    assert len({text for _, text in first}) == len(first) == 6
    assert {kind for kind, _ in first} == {"span", "keywords", "rare"}
    assert make_queries(PASSAGE, 0, frequencies(), 5) == []
