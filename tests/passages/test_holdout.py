from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sentcompress.passages.holdout import choose, held_out
from sentcompress.passages.scan import Unit
from sentcompress.passages.words import likeness, mark, mark_and_likeness


@pytest.mark.parametrize(
    ("count", "share", "held"),
    [
        (100, None, 25),
        (1000, None, 50),
        (4000, None, 200),
        (1_000_000, None, 500),
        (100, 0.1, 10),
        (9, 0.1, 2),
        (2, 0.5, 1),
    ],
)
def test_the_number_of_held_out_documents(count: int, share: float | None, held: int) -> None:
    assert held_out(count, share) == held


def units(count: int) -> list[Unit]:
    return [Unit(str(n), "", (), (f"Passage {n} one.", f"Passage {n} two.")) for n in range(count)]


def test_the_sample_has_no_held_out_passage_and_the_size_asked_for() -> None:
    choice = choose(units(1000), 0.1, 500, seed=3)
    assert choice.held.sum() == 100
    assert choice.dev.sum() == (choice.dev & choice.held).sum() == 50
    assert len(choice.held_passages) == 200
    assert len(choice.sampled) == 300
    assert not choice.held_passages & choice.sampled
    assert len(choose(units(1000), 0.1, 50, seed=3).sampled) == 0


def test_documents_that_come_later_change_little() -> None:
    """With the same share, a document stays on its side unless the border moves over it."""
    before, after = choose(units(2000), 0.1, 500, seed=3), choose(units(2100), 0.1, 500, seed=3)
    assert (before.held != after.held[:2000]).sum() < 40


def test_the_same_words_are_one_document() -> None:
    twice = [*units(50), *(Unit(unit.id, "", (), tuple(p.upper() for p in unit.passages)) for unit in units(50))]
    choice = choose(twice, 0.2, 10, seed=0)
    assert np.array_equal(choice.first, [True] * 50 + [False] * 50)
    assert np.array_equal(choice.held[:50], choice.held[50:])
    assert choice.repeated_ids.all()


def test_an_id_that_a_repeated_one_could_get_is_told_apart_too() -> None:
    ids = ["a", "a", "a~1", "a~1~0", "b~1", "b", "ab"]
    choice = choose([replace(unit, id=one) for unit, one in zip(units(7), ids, strict=True)], 0.2, 10, seed=0)
    assert choice.repeated_ids.tolist() == [True] * 4 + [False] * 3


def test_marks_ignore_case_and_punctuation_but_not_words() -> None:
    assert mark("The CAT, sat.", 1) == mark("the cat sat", 1) != mark("the cat sat", 2)
    assert mark("the cats sat", 1) != mark("the cat sat", 1)
    assert mark("!!!", 1) != mark("???", 1)


TYPED = 'It\'s a well-known "harbour" of 1990-95, no {}.'
TYPESET = "It\N{RIGHT SINGLE QUOTATION MARK}s a well\N{NON-BREAKING HYPHEN}known “harbour” of 1990\N{EN DASH}95, no {}."


def test_typographic_signs_make_no_other_document() -> None:
    both = [Unit(f"{form[2]}{n}", "", (), (form.format(n),)) for form in (TYPED, TYPESET) for n in range(50)]
    choice = choose(both, 0.2, 30, seed=0)
    assert choice.first.tolist() == [True] * 50 + [False] * 50
    assert np.array_equal(choice.held[:50], choice.held[50:])
    assert choice.held.sum() == 20
    alone = choose(both[:50], 0.2, 30, seed=0)
    assert np.array_equal(alone.held, choice.held[:50])
    assert (alone.sampled, alone.held_passages) == (choice.sampled, choice.held_passages)
    assert (len(choice.sampled), choice.distinct_passages) == (20, 50)


def test_likeness_ignores_signs_inside_words_but_not_letters_and_digits() -> None:
    alike = ["don't", "don’t", "DON‘T", "donʼt", "don t"]
    assert len({likeness(text, 1) for text in alike}) == 1
    assert len({likeness(text, 1) for text in ("dont", "don't", "do n't", "1990-95", "19 9095")}) == 5
    assert likeness("word\N{EM DASH}word", 1) == likeness("word \N{EN DASH} word", 1) == likeness("Word - word", 1)
    typeset = ["ef\u00adfi\u00adcient of\ufb01ce", "e\ufb03cient o\ufb03ce", "e\ufb00icient of\u200b\ufb01ce"]
    assert len({likeness(text, 1) for text in ["Efficient office", *typeset]}) == 1
    assert len({likeness(text, 1) for text in ("efcient", "ef ficient", "m²", "m2", "\ufb02ow", "fiow")}) == 6
    for text in ("don't", "a plain text", "!!!", "don’t", *typeset):
        assert mark_and_likeness(text, 3) == (mark(text, 3), likeness(text, 3))
