"""What settings become for a corpus."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sentcompress.commands.shared import IndexOptions
from sentcompress.errors import UsageError
from sentcompress.evaluation.index_plan import KINDS, bits_for, cells_for, memory_of, plan_index, segments_for

SETTINGS = IndexOptions()


def test_cells_are_lowered_to_what_the_corpus_can_train() -> None:
    assert cells_for(87_265, 1024) == 1024
    assert cells_for(39 * 1024, 1024) == 1024
    assert cells_for(39 * 1024 - 1, 1024) == 1023
    assert cells_for(5, 1024) == 1


def test_codes_get_shorter_until_the_corpus_is_too_small() -> None:
    assert [bits_for("pq", documents) for documents in (9984, 9983, 4991, 624)] == [8, 7, 6, 4]
    with pytest.raises(UsageError, match="623 documents is too small to train pq, which needs at least 624"):
        bits_for("pq", 623)


def test_segments_divide_the_dimension() -> None:
    assert [segments_for(width, None) for width in (128, 384, 30, 7, 2)] == [32, 96, 6, 1, 1]
    assert segments_for(128, 16) == 16
    for wanted in (24, 256):
        with pytest.raises(UsageError, match=f"{wanted} segments do not divide"):
            segments_for(128, wanted)


def test_what_is_lowered_is_told() -> None:
    plan = plan_index("ivfpq", SETTINGS, 1000, 64)
    assert plan.settings == {"nlist": 25, "nprobe": 5, "segments": 16, "bits": 4}
    (note,), (warning,) = plan.notes, plan.warnings
    assert "nlist lowered from 1024 to 25" in note
    assert "bits of a code lowered from 8 to 4" in warning
    asked = plan_index("ivf", replace(SETTINGS, nlist=512), 1000, 64)
    assert not asked.notes
    assert "nlist lowered from 512 to 25" in asked.warnings[0]
    for enough in (plan_index("ivfpq", SETTINGS, 100_000, 64), plan_index("ivf", replace(SETTINGS, nlist=25), 975, 64)):
        assert (enough.warnings, enough.notes) == ((), ())


def test_candidates_are_at_least_the_depth_and_at_most_the_corpus() -> None:
    assert plan_index("binary", SETTINGS, 50_000, 8, 10).settings == {"candidates": 100, "rescore": "int8"}
    assert plan_index("binary", SETTINGS, 50_000, 8, 1000).details["candidates"] == 1000
    plan = plan_index("binary", SETTINGS, 60, 8, 10)
    assert plan.details["candidates"] == 60
    assert plan.warnings == ("binary: all 60 documents are candidates, so the codes select nothing",)


def test_the_memory_of_an_index_is_that_of_its_vectors_codes_and_links() -> None:
    each = {kind: memory_of(plan_index(kind, SETTINGS, 100_000, 384), 100_000, 384) // 100_000 for kind in KINDS}
    assert each == {
        **{"flat": 1536, "ivf": 1544, "ivfpq": 96 + 8, "pq": 96 + 384, "hnsw": 1536 + 256},
        **{"sq8": 384, "fp16": 768, "binary": 48 + 384},
    }
    exact = plan_index("binary", replace(SETTINGS, rescore="float32"), 1000, 384)
    assert memory_of(exact, 1000, 384) == 1000 * (48 + 1536)


def test_training_takes_no_more_than_faiss_would_use() -> None:
    needed = {kind: plan_index(kind, SETTINGS, 8_800_000, 128).training for kind in KINDS}
    assert needed["flat"] == needed["hnsw"] == needed["fp16"] == 0
    assert needed["ivf"] == needed["ivfpq"] == 256 * 1024
    assert plan_index("ivf", SETTINGS, 5000, 128).training == 5000
