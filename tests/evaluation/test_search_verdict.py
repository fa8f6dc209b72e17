"""What the verdict of a search fidelity warns of."""

from __future__ import annotations

import pytest

from sentcompress.corpora import documents_artifact
from sentcompress.corpora.search_texts import SearchTexts
from sentcompress.evaluation.metrics import FIRST_FOUND, RESULTS_SHARED, SEARCH_FIDELITY
from sentcompress.evaluation.score import Recorder
from sentcompress.evaluation.search_verdict import LOG, judge

RESULT = {
    "model": {"label": "small"},
    "compare": {"label": "big"},
    "queries": 900,
    "clusters": 100,
    "passages": 9000,
    "queries_among_passages": 45,
    "protocol": {"resampled": "100 documents"},
}


@pytest.mark.parametrize(("part", "told"), [("rare", "queries of the kind rare"), (LOG, "the queries of your log")])
def test_the_kind_of_queries_that_loses_most_is_named_as_the_user_knows_it(part: str, told: str) -> None:
    recorder = Recorder({"model": "students/small", "compare": "model:big"})
    for metric in (SEARCH_FIDELITY, RESULTS_SHARED, FIRST_FOUND):
        recorder.add("docs", metric, {"model": 90.0, "compare": 100.0}, count=900)
    recorder.add("docs", SEARCH_FIDELITY, {"model": 80.0, "compare": 100.0}, part=part, count=100)
    assert judge(RESULT, recorder.scores).cautions == [f"{told} lose most (80.0)"]


def test_queries_that_are_passages_are_told() -> None:
    """A collection of questions: each finds itself."""
    recorder = Recorder({"model": "students/small", "compare": "model:big"})
    for metric in (SEARCH_FIDELITY, RESULTS_SHARED, FIRST_FOUND):
        recorder.add("docs", metric, {"model": 90.0, "compare": 100.0}, count=900)
    (told,) = judge({**RESULT, "queries_among_passages": 46}, recorder.scores).cautions
    assert told.startswith("46 of the queries are also passages, which any model finds first: ")


def test_queries_of_a_log_are_called_so() -> None:
    assert LOG == documents_artifact.LOG
    texts = SearchTexts("docs", ("a", "b"), ("c", "d", "e"), ("span", LOG, LOG), ("1", "", ""), True)
    assert texts.resampled == "1 document and 2 queries of the log"
    others = SearchTexts("docs", ("a", "b"), ("c", "d", "e"), ("span", "", LOG), ("1", "", ""), True)
    assert others.resampled == "1 document and 2 other queries"
