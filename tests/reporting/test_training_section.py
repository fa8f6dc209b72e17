"""The table of students: what each was made from."""

from __future__ import annotations

from sentcompress.reporting.sections.training import _made_from


def test_a_student_is_told_with_the_sizes_that_it_was_cut_to() -> None:
    plain = {"student": "teacher:3", "teacher": "sentence-transformers/all-MiniLM-L6-v2", "vocabulary": None}
    assert _made_from(plain) == "teacher:3 of all-MiniLM-L6-v2"
    cut = {**plain, "student": "general-5m", "vocabulary": 10_000, "feed_forward": 192}
    expected = (
        "general-5m of all-MiniLM-L6-v2, cut to a vocabulary of 10,000 tokens and feed-forward layers of 192 units"
    )
    assert _made_from(cut) == expected
