"""Neighbours, similarities and disagreements of two models against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from sentcompress.evaluation import fidelity
from sentcompress.evaluation.fidelity import (
    Spread,
    bin_edges,
    disagreements,
    histogram,
    nearest,
    nearest_found,
    pairwise,
    shared_neighbours,
)
from sentcompress.evaluation.fidelity_result import Measuring, agreement, cosine_to, shape_of
from sentcompress.evaluation.fidelity_verdict import judge
from sentcompress.evaluation.metrics import NEAREST, NEIGHBOURS, SIMILARITIES
from sentcompress.evaluation.score import Recorder, Score, select, value_of

Vectors = npt.NDArray[np.float32]


def unit(count: int, width: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).normal(size=(count, width))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def near(vectors: Vectors, noise: float, seed: int) -> Vectors:
    """The same vectors, blurred."""
    blurred = vectors + noise * np.random.default_rng(seed).normal(size=vectors.shape)
    return (blurred / np.linalg.norm(blurred, axis=1, keepdims=True)).astype(np.float32)


def test_nearest_equals_a_full_sort_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = unit(50, 8, 0)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2)
    expected = np.argsort(-cosines, axis=1)[:, :5]
    for block in (7, 512):
        monkeypatch.setattr(fidelity, "BLOCK", block)
        np.testing.assert_array_equal(nearest(vectors, 5), expected)


def test_shared_neighbours_counts_what_both_name() -> None:
    first = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3]])
    second = np.array([[3, 2, 1], [5, 3, 6], [7, 8, 9]])
    np.testing.assert_allclose(shared_neighbours(first, second), [1, 1 / 3, 0])


def test_nearest_found_asks_for_the_first_of_the_other() -> None:
    first = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3]])
    second = np.array([[3, 9, 8], [5, 0, 2], [0, 8, 9]])
    np.testing.assert_allclose(nearest_found(first, second), [1, 0, 1])


def test_pairwise_and_histogram() -> None:
    vectors = unit(20, 4, 1)
    expected = [float(vectors[i] @ vectors[j]) for i in range(20) for j in range(i + 1, 20)]
    np.testing.assert_allclose(pairwise(vectors), expected, atol=1e-6)
    counts = histogram(np.array([-1.0000001, -1, 0.01, 1, 1.0000001]), bin_edges())
    assert (sum(counts), counts[0], counts[25], counts[-1]) == (5, 2, 1, 2)


def test_disagreements_find_what_was_moved() -> None:
    teacher = unit(60, 16, 2)
    teacher[7] = near(teacher[3:4], 0.02, 0)[0]  # a near pair of the teacher, torn apart by the student
    student = near(teacher, 0.01, 3)
    student[7] = unit(1, 16, 9)[0]
    spreads = (Spread.of(pairwise(student)), Spread.of(pairwise(teacher)))
    found = disagreements(student, teacher, (nearest(student, 5), nearest(teacher, 5)), spreads, 3)
    assert (found[0].first, found[0].second) == (3, 7)
    assert found[0].compare == pytest.approx(float(teacher[3] @ teacher[7]), abs=1e-6)
    assert found[0].model == pytest.approx(float(student[3] @ student[7]), abs=1e-6)
    assert found[0].gap < 0
    rows = [row for pair in found for row in (pair.first, pair.second)]
    assert len(rows) == len(set(rows))
    assert disagreements(teacher, teacher, (nearest(teacher, 5),) * 2, (spreads[1],) * 2, 3) == []


def test_similarities_are_standardised_by_mean_and_deviation() -> None:
    spread = Spread.of(np.array([0.4, 0.6, 0.8]))
    np.testing.assert_allclose(spread.standardised(np.array([0.6, 0.6 + 2 * spread.deviation])), [0, 2], atol=1e-12)
    assert Spread(0.5, 0.0).standardised(np.array([0.5, 0.5])).tolist() == [0, 0]


def agreed(
    vectors: dict[str, Vectors], texts: list[str], lengths: npt.NDArray[np.int64], measuring: Measuring
) -> tuple[dict[str, Any], list[Score]]:
    recorder = Recorder(dict.fromkeys(vectors, "x"))
    return agreement(recorder, "lines", vectors, texts, lengths, measuring), recorder.scores


def test_agreement_of_a_model_with_itself_is_perfect() -> None:
    vectors, texts = unit(80, 8, 4), [f"text {n}" for n in range(80)]
    found, scores = agreed({"model": vectors, "compare": vectors}, texts, np.arange(80), Measuring(k=5, pairwise=40))
    shared, nearest_one, alike = select(scores, role="model")
    assert (shared.metric, shared.part, shared.data) == (NEIGHBOURS, "5 nearest", "lines")
    assert (shared.value, shared.count) == (100, 80)
    assert shared.interval == (pytest.approx(95.418, abs=1e-3), 100)  # Wilson's
    assert (nearest_one.metric, nearest_one.value) == (NEAREST, 100)
    assert (alike.metric, alike.count) == (SIMILARITIES, 40)
    assert alike.value == pytest.approx(100)
    assert {score.value for score in select(scores, role="compare")} == {100}
    assert found["disagreements"] == []
    assert found["histogram"]["model"] == found["histogram"]["compare"]
    assert sum(found["histogram"]["model"]) == 40 * 39 / 2


def test_agreement_of_unrelated_models_is_chance() -> None:
    texts = [f"text {n}" for n in range(300)]
    vectors = {"model": unit(300, 8, 5), "compare": unit(300, 12, 6)}
    found, scores = agreed(vectors, texts, np.arange(300), Measuring(k=10, pairwise=300, show=4))
    (shared,) = select(scores, NEIGHBOURS, role="model")
    assert shared.value == pytest.approx(100 * found["neighbours"]["by_chance"], abs=2)
    expected = stats.spearmanr(pairwise(vectors["model"]), pairwise(vectors["compare"])).statistic
    # the sentences are shuffled, the pairs are the same
    assert value_of(scores, SIMILARITIES) == pytest.approx(100 * expected, abs=1e-4)
    assert len(found["disagreements"]) == 4


def test_the_compared_models_nearest_row_is_looked_for_among_the_models_neighbours() -> None:
    vectors = {"model": unit(100, 4, 5), "compare": near(unit(100, 4, 5), 0.3, 6)}
    found, scores = agreed(vectors, [f"text {n}" for n in range(100)], np.arange(100), Measuring(k=3, pairwise=50))
    ours, theirs = (nearest(vectors[role], 3) for role in ("model", "compare"))
    looked_for, reversed_ = (
        np.mean([of[row][0] in among[row] for row in range(100)]) for of, among in ((theirs, ours), (ours, theirs))
    )
    assert looked_for != reversed_
    assert select(scores, NEAREST, role="model")[0].value == pytest.approx(100 * looked_for)
    assert found["neighbours"]["by_chance"] == pytest.approx(3 / 99)


def test_overlap_by_length() -> None:
    teacher, texts = unit(90, 8, 7), [f"text {n}" for n in range(90)]
    lengths = np.repeat([5, 10, 30], 30)
    found, scores = agreed({"model": near(teacher, 0.1, 1), "compare": teacher}, texts, lengths, Measuring(k=5))
    rows = found["neighbours"]["by_length"]
    assert [(row["name"], row["sentences"], row["shortest"], row["longest"]) for row in rows] == [
        ("short", 30, 5, 5),
        ("medium", 30, 10, 10),
        ("long", 30, 30, 30),
    ]
    assert np.mean([row["overlap"] for row in rows]) == pytest.approx(scores[0].value / 100)
    alike, _ = agreed({"model": teacher, "compare": teacher}, texts, np.full(90, 7), Measuring(k=5))
    assert [row["name"] for row in alike["neighbours"]["by_length"]] == ["short"]


def test_shape_and_cosine() -> None:
    vectors = unit(200, 20, 8)
    shape = shape_of(vectors)
    np.testing.assert_allclose(shape["covariance"], np.cov(vectors[:, :16].T), atol=1e-6)
    assert shape["dimensions_shown"] == 16
    assert 18 < shape["effective_rank"] <= 20
    assert abs(shape["anisotropy"]) < 0.02
    same = shape_of(np.ones((5, 3), np.float32) / np.sqrt(3).astype(np.float32))
    assert same["effective_rank"] is None
    assert same["mean_absolute_correlation"] is None
    assert same["anisotropy"] == pytest.approx(1)
    student = near(vectors, 0.1, 2)
    cosines = (student * vectors).sum(axis=1)
    summary = cosine_to(student, vectors)
    assert summary["mean"] == pytest.approx(cosines.mean(), abs=1e-6)
    assert summary["percentile_5"] == pytest.approx(np.percentile(cosines, 5), abs=1e-6)


def scores_of(overlap: float) -> list[Score]:
    recorder = Recorder({"model": "student", "compare": "teacher"})
    recorder.add("lines", NEIGHBOURS, {"model": 100 * overlap, "compare": 100})
    recorder.add("lines", NEAREST, {"model": 90, "compare": 100})
    return recorder.scores


def document(**changes: object) -> dict[str, object]:
    tokens = {"limit": 64, "truncated_share": 0.0, "unknown_share": 0.0}
    return {
        "model": {"label": "student", "tokens": tokens},
        "compare": {"label": "teacher", "tokens": None},
        "sentences": 5000,
        "seen_in_training": False,
        "unit_of_length": "tokens",
        "neighbours": {"k": 10, "by_length": []},
        **changes,
    }


@pytest.mark.parametrize(
    ("overlap", "level"),
    [(1.0, "same"), (0.85, "close"), (0.7, "close"), (0.5, "good"), (0.3, "rough"), (0.1, "poor"), (0.0, "poor")],
)
def test_verdict_has_a_level_for_every_overlap(overlap: float, level: str) -> None:
    verdict = judge(document(), scores_of(overlap))
    assert verdict.level == level
    assert f"student keeps {100 * overlap:.0f}% of the 10 nearest neighbours of teacher" in verdict.text
    assert "As a rule of thumb" in verdict.text
    assert verdict.as_dict()["rules_of_thumb"]["good"] == 0.45


def test_verdict_names_what_to_mind() -> None:
    buckets = [
        {"name": "short", "overlap": 0.8, "shortest": 3, "longest": 9},
        {"name": "long", "overlap": 0.5, "shortest": 20, "longest": 40},
    ]
    tokens = {"limit": 64, "truncated_share": 0.2, "unknown_share": 0.05}
    cautions = judge(
        document(
            neighbours={"k": 10, "by_length": buckets},
            model={"label": "student", "tokens": tokens},
            sentences=200,
            seen_in_training=True,
        ),
        scores_of(0.7),
    ).cautions
    words = (
        "long sentences lose more",
        "two thirds of these texts have fewer than 20 tokens",
        "20% of the sentences at 64 tokens",
        "5.0% of the tokens",
        "few",
        "trained",
    )
    assert all(any(word in caution for caution in cautions) for word in words)
    assert judge(document(), scores_of(0.7)).cautions == []
    long = [{"name": "long", "overlap": 0.7, "shortest": 200, "longest": 400}]
    assert judge(document(neighbours={"k": 10, "by_length": long}), scores_of(0.7)).cautions == []


def test_the_covariance_is_that_of_ibkd_s_figure_4() -> None:
    """The first 16 dimensions, of 10,000 sentences."""
    vectors = unit(10_050, 20, 4)
    found = shape_of(vectors)
    assert (found["dimensions_shown"], found["sentences_of_covariance"]) == (16, 10_000)
    np.testing.assert_allclose(found["covariance"], np.cov(vectors[:10_000, :16].T), atol=1e-7)
    np.testing.assert_allclose(found["correlation"], np.corrcoef(vectors[:10_000, :16].T), atol=1e-6)
