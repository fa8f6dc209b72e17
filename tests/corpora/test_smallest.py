"""Keeping the values with the smallest numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sentcompress.corpora.smallest import Smallest


@given(st.lists(st.integers(0, 30)), st.integers(1, 10))
def test_the_smallest_numbers_are_kept_with_their_first_values(numbers: list[int], most: int) -> None:
    kept: Smallest[int] = Smallest(most)
    for place, number in enumerate(numbers):
        kept.add(number, place)
    wanted = sorted(set(numbers))[:most]
    assert kept.values() == [numbers.index(number) for number in wanted]
    assert kept.complete == (len(set(numbers)) <= most)
