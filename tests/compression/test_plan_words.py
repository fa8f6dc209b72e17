"""The plan in words: its times, its models, and what it warns of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from compression_plans import CUT, OWN, PUBLISHED, ROUNDED, plan

from sentcompress.compression.plan_words import told, told_documents


def test_the_plan_in_words() -> None:
    lines = told(plan([PUBLISHED, CUT], (120.0,)))
    assert lines[0] == "60 s: encode all texts with the teacher"
    assert lines[1] == "4 min: train 2 candidates, 2 min each, and keep the better one"
    assert lines[-2:] == [
        "Candidates: general-9m, a published student (9.49 MB); 2 of the teacher's layers, a vocabulary of 8,000 "
        "tokens, token embeddings of 128 dimensions (9 MB)",
        "A model whose vocabulary is cut to your documents loses more on other text",
    ]
    assert told(plan([PUBLISHED, CUT]))[-1].startswith("With more time, "), "the cut one is not trained"


@pytest.mark.parametrize(("count", "kept"), [(2, "the better one"), (3, "the best one"), (4, "the better half")])
def test_what_a_round_keeps_is_told(count: int, kept: str) -> None:
    rounds = (60.0,) if count < 4 else (60.0, 60.0)
    assert told(plan([CUT] * count, rounds))[1].endswith(f"and keep {kept}")


def test_a_plan_begins_with_what_was_read() -> None:
    facts = {"documents": 1200, "passages": 4000, "titles": 3, "queries": 8000, "held_out_documents": 60}
    facts |= {"logged_queries": 0, "held_out_logged_queries": 0}
    read = told_documents({**facts, "held_out_by": "document"})
    assert told(plan([PUBLISHED], read=read))[0] == (
        "Read 1,200 documents: 4,000 passages, 3 titles and 8,000 queries made from them to train on; 60 documents are "
        "held out for measuring"
    )
    assert "; 60 sections are held out" in told_documents({**facts, "held_out_by": "section"})
    skipped = told_documents({**facts, "held_out_by": "document", "skipped": {"bad_lines": 3, "repeated": 7}})
    assert skipped.endswith("held out for measuring; skipped 3 unreadable lines or files"), "also when it is resumed"
    logged = told_documents({**facts, "held_out_by": "document", "logged_queries": 900, "held_out_logged_queries": 90})
    assert "8,000 queries (made from them, and your own) to train on; 60 documents and 90 of your 900 queries" in logged
    pairs = told_documents({**facts, "held_out_by": "document", "columns": ["question1", "question2"]})
    assert pairs.startswith(
        "Read 1,200 documents (each text in the columns question1, question2; choose with `column`): 4,000 passages, "
    )


def test_a_kept_index_has_no_vectors_to_store() -> None:
    kept = plan([PUBLISHED], keep_index=True)
    assert not any("stored" in line for line in told(kept))
    assert any("choose how vectors are stored, export" in line for line in told(plan([PUBLISHED])))


def test_only_candidates_that_train_are_told() -> None:
    lines = told(plan([PUBLISHED, CUT]))
    assert lines[-2] == "The model: general-9m, a published student (9.49 MB)"
    assert lines[-1] == (
        "With more time, it would be compared with 2 of the teacher's layers, a vocabulary of 8,000 tokens, token "
        "embeddings of 128 dimensions (9 MB)"
    )
    assert told(plan([PUBLISHED]))[-1] == "The model: general-9m, a published student (9.49 MB)"


def test_measuring_that_takes_longer_than_the_time_asked_for_is_told() -> None:
    of = plan([OWN])
    longer = "This is longer than the requested time, and cannot be shortened."
    assert longer not in told(of)
    assert told(replace(of, budget=replace(of.budget, seconds=100.0)))[-1] == longer


def test_a_plan_says_that_results_are_compared_among_few_passages() -> None:
    usual = plan([PUBLISHED])
    tight = replace(usual, budget=replace(usual.budget, tight=True, passages=412))
    (line,) = set(told(tight)) - set(told(usual))
    assert "among only 412 passages" in line


def test_a_model_with_all_of_the_teachers_layers_is_said_to_be_no_faster() -> None:
    whole, published, own = (
        any("as much as the teacher" in line for line in told(plan([one]))) for one in (ROUNDED, PUBLISHED, OWN)
    )
    assert (whole, published, own) == (True, False, True)
