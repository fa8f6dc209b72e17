"""What the model loses and what the index loses, told apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sentcompress.commands.shared import IndexOptions
from sentcompress.evaluation import retrieval
from sentcompress.evaluation.index import Found
from sentcompress.evaluation.metrics import (
    BYTES_PER_DOCUMENT,
    INDEX_BYTES,
    INDEX_LOSS,
    MRR,
    OVERLAP,
    SEARCH_P50,
    SEARCH_P95,
    SEARCH_TIME,
)
from sentcompress.evaluation.ranking import scores_of_queries
from sentcompress.evaluation.retrieval import EXACT, Comparison, RetrievalTask, Searched
from sentcompress.evaluation.retrieval_protocol import protocol, with_documents
from sentcompress.evaluation.score import Recorder, Score, select, value_of
from sentcompress.evaluation.similarity import normalized
from sentcompress.evaluation.tables import ratio
from sentcompress.evaluation.vector_rows import in_memory

DOCUMENTS, QUERIES = 1500, 80


@pytest.fixture
def comparison() -> Comparison:
    """A teacher whose query is its document with some noise, and a model with a quarter of its dimensions."""
    generator = np.random.default_rng(0)
    documents = normalized(generator.normal(size=(DOCUMENTS, 32)))[0]
    queries = normalized(documents[:QUERIES] + 0.2 * generator.normal(size=(QUERIES, 32)))[0]
    small = [normalized(side[:, :8])[0] for side in (documents, queries)]
    searched = {
        "model": Searched(in_memory(small[0]), small[1]),
        "compare": Searched(in_memory(documents), queries),
    }
    grades = [{query: 1} if query % 4 else {} for query in range(QUERIES)]
    task = RetrievalTask(grades, lambda row: f"{row:05d}".encode(), MRR, 10, rounds=1)
    return Comparison(searched, task, "data", Recorder({"model": "small", "compare": "large"}))


def one(comparison: Comparison, metric: str, part: str, role: str = "model") -> Score:
    (found,) = select(comparison.recorder.scores, metric, "data", part, role)
    return found


def test_exact_scores_are_brute_force(comparison: Comparison) -> None:
    comparison.exact()
    assert comparison.recorder.scores[0].metric == MRR
    for role, of in comparison.searched.items():
        products = of.queries @ of.documents.open().T
        ranked = np.argsort(-products, axis=1)[:, :10]
        expected = scores_of_queries(ranked, comparison.task.grades)
        for name, values in expected.items():
            assert one(comparison, name, EXACT, role).value == pytest.approx(100 * values.mean())
        main = one(comparison, MRR, EXACT, role)
        assert main.interval is not None
        assert main.interval.low <= main.value <= main.interval.high
        assert main.count == 60
    ours, theirs = one(comparison, MRR, EXACT), one(comparison, MRR, EXACT, "compare")
    assert ours.value < theirs.value
    assert ours.kept == pytest.approx(100 * ours.value / theirs.value)
    assert ours.difference == pytest.approx(ours.value - theirs.value)
    assert ours.difference_interval is not None
    assert ours.difference_interval.high < 0


def test_without_rounds_there_are_no_intervals(comparison: Comparison) -> None:
    comparison.task = replace(comparison.task, bootstrap=0)
    comparison.exact()
    ours = one(comparison, MRR, EXACT)
    assert (ours.interval, ours.difference_interval) == (None, None)
    assert "no intervals" in protocol("pairs", None, comparison.task, threads=1)["statement"]


def test_an_index_loses_what_exact_search_has_more(comparison: Comparison) -> None:
    comparison.exact()
    comparison.index("flat", IndexOptions())
    assert one(comparison, INDEX_LOSS, "flat").value == 0
    assert one(comparison, OVERLAP, "flat").value == 100
    assert one(comparison, MRR, "flat").kept == pytest.approx(one(comparison, MRR, EXACT).kept)
    ivf = comparison.index("ivf", IndexOptions(nlist=30, nprobe=1))

    def value(metric: str, role: str, part: str = "ivf") -> float:
        return value_of(comparison.recorder.scores, metric, "data", part, role)

    for role in ("model", "compare"):
        lost = value(MRR, role, EXACT) - value(MRR, role)
        assert value(INDEX_LOSS, role) == pytest.approx(lost)
        assert lost > 0
        assert 0 < value(OVERLAP, role) < 100
        assert 0 < value(SEARCH_P50, role) <= value(SEARCH_P95, role)
        assert value(BYTES_PER_DOCUMENT, role) == pytest.approx(value(INDEX_BYTES, role) / DOCUMENTS, abs=0.01)
    smaller = ratio(one(comparison, INDEX_BYTES, "flat"))
    assert smaller is not None
    assert 3 < smaller < 4.1
    assert ivf == {"index": "ivf", "settings": {role: {"nlist": 30, "nprobe": 1} for role in ("model", "compare")}}
    codes = comparison.index("pq", IndexOptions(candidates=20))
    segments = [codes["settings"][role]["segments"] for role in ("model", "compare")]
    assert segments[1] > segments[0]


def test_times_are_milliseconds_of_a_thousand_queries_and_of_one(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three batches of 80 queries, the median counts; of single ones, the percentiles."""
    batched = {"model": [0.9, 0.2, 0.16], "compare": [0.4, 0.4, 0.4]}
    monkeypatch.setattr(retrieval, "alternate", lambda calls, rounds: {role: batched[role] for role in calls})
    single = {"model": [0.001] * 18 + [0.003] * 2, "compare": [0.002] * 20}
    monkeypatch.setattr(retrieval, "_one_by_one", lambda *_: single)
    comparison.exact()
    comparison.index("flat", IndexOptions())
    found = {
        metric: [one(comparison, metric, "flat", role).value for role in ("model", "compare")]
        for metric in (SEARCH_TIME, SEARCH_P50, SEARCH_P95)
    }
    assert found == {SEARCH_TIME: [2500, 5000], SEARCH_P50: [1, 2], SEARCH_P95: [3, 2]}


def test_the_protocol_names_what_made_the_documents_vectors() -> None:
    facts = {"statement": "as usual", "depth": 10}
    assert with_documents(facts, {"digest": "a"}) == facts
    own = {"digest": "a", "documents_by": {"digest": "a", "label": "small", "store": "int8"}}
    assert with_documents(facts, own) == {**facts, "statement": "as usual; documents' vectors stored as int8"}
    other = {"digest": "a", "documents_by": {"digest": "b", "label": "large", "projection": "pca"}}
    assert with_documents(facts, other)["statement"] == "as usual; documents by large, projected"


def test_queries_without_anything_to_find_are_timed_and_not_scored(comparison: Comparison) -> None:
    facts = protocol("pairs", None, comparison.task, threads=1)
    assert facts["timed_queries"] == facts["single_queries"] == QUERIES
    assert "1 thread," in facts["statement"]
    assert "Recall@10, x 100" in facts["statement"]
    found = Found(np.zeros((4, 1), dtype=np.float32), np.array([[9], [1], [2], [9]]))
    assert scores_of_queries(found.documents, comparison.task.grades[:4])[MRR].tolist() == [1, 1, 0]
