"""Which shapes fit a budget, and that the computed size is that of the exported graph."""

from __future__ import annotations

import pytest

from sentcompress.compression.shapes import TeacherSize, fitting, own_shape, smallest
from sentcompress.published import PUBLISHED

MINILM = TeacherSize(layers=6, width=384, neurons=1536, tokens=30522, positions=512, vector=384)


def test_the_sizes_are_those_of_graphs_that_were_exported() -> None:
    assert MINILM.graph_bytes() == pytest.approx(22_829_488, rel=0.01)
    assert MINILM.graph_bytes(layers=3, token_dim=128) == pytest.approx(PUBLISHED["general-9m"].graph_bytes, rel=0.01)


@pytest.mark.parametrize("most", [3_000_000, 6_000_000, 10_000_000, 15_000_000])
def test_what_is_tried_fits_and_uses_the_budget(most: int) -> None:
    shapes = fitting(MINILM, most, with_published=False, count=4, can_factorise=True)
    assert shapes
    assert all(0.6 * most <= shape.bytes <= most for shape in shapes)
    assert len({shape.student for shape in shapes}) == len(shapes)


def test_a_published_student_comes_first_where_it_fits_and_the_teacher_is_its_own() -> None:
    first = fitting(MINILM, 10_000_000, with_published=True, count=2, can_factorise=True)[0]
    assert (first.student, first.published) == ("general-9m", True)
    assert not any(s.published for s in fitting(MINILM, 10_000_000, with_published=False, count=9, can_factorise=True))


@pytest.mark.parametrize(("most", "tokens"), [(22_000_000, 28_000), (16_000_000, 12_500), (15_000_000, None)])
def test_the_teacher_with_a_smaller_vocabulary_comes_first_if_that_is_large_enough(
    most: int, tokens: int | None
) -> None:
    first, *others = fitting(MINILM, most, with_published=True, count=4, can_factorise=True)
    assert first.whole == (tokens is not None)
    assert all(not shape.whole for shape in others)
    if tokens:
        assert (first.student, first.options) == ("teacher:6", {"vocabulary": tokens})
        assert most - 500 * 384 <= first.bytes <= most
        assert first.described == f"all of the teacher's layers, a vocabulary of {tokens:,} tokens"
        assert "teacher:6" not in {shape.student for shape in others}
    else:
        assert first.student == "general-9m"


def test_a_budget_that_nothing_fits() -> None:
    least = smallest(MINILM, can_factorise=True)
    assert fitting(MINILM, least.bytes - 1, with_published=True, count=4, can_factorise=True) == []
    assert fitting(MINILM, least.bytes, with_published=True, count=4, can_factorise=True) == [least]


def test_without_a_narrow_token_table_no_shape_has_one() -> None:
    shapes = fitting(MINILM, 10_000_000, with_published=False, count=9, can_factorise=False)
    assert shapes
    assert not any("token-dim" in shape.options for shape in shapes)


def test_the_teacher_itself() -> None:
    own = own_shape(MINILM, "embedded")
    assert own.untrained
    assert own.bytes == MINILM.graph_bytes()
