"""The verdict of a search fidelity evaluation: what to expect of a student in place of its teacher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sentcompress.evaluation.metrics import FIRST_FOUND, RESULTS_SHARED, SEARCH_FIDELITY
from sentcompress.evaluation.score import MODEL, Score, select
from sentcompress.evaluation.verdict import Level, Verdict, verdict
from sentcompress.numeric import between, whole_share

_KEPT = "models of this level kept {} of the teacher's nDCG@10 on three judged collections"
# Smallest search fidelity, level, and what to expect: rules of thumb, with what was measured in
# benchmarks/results/search_fidelity.md.
LEVELS = (
    Level(99, "same", "practically the same results"),
    Level(85, "close", f"a close replacement; {_KEPT.format('98.6 to 100.5%')}"),
    Level(70, "good", f"good for most uses; {_KEPT.format('92.5 to 99.7%')}"),
    Level(50, "rough", f"a rough approximation; {_KEPT.format('85.7 to 99.9%')}, so look at the results of a search"),
    Level(
        0,
        "poor",
        f"not a replacement; {_KEPT.format('31 to 96%')}; train longer, on documents like these, or use a larger "
        "student",
    ),
)
# The part of the scores of queries that came from a log.
LOG = "log"
# Thresholds of the cautions.
WORSE_KIND = 5.0
FEW_QUERIES, FEW_PASSAGES = 200, 2000
# Largest share of queries that are passages too.
QUERIES_AMONG_PASSAGES = 0.05
# With fewer clusters, a percentile interval is too narrow: about 0.91 of them cover the value with 12, 0.86 with 6.
FEW_CLUSTERS = 20


def judge(result: Mapping[str, Any], scores: Sequence[Score]) -> Verdict:
    """The verdict for the document and scores of an `eval-search`."""
    of_model = select(scores, role=MODEL)
    fidelity, shared, first = (select(of_model, metric)[0] for metric in (SEARCH_FIDELITY, RESULTS_SHARED, FIRST_FOUND))
    over = result["protocol"]["resampled"]
    interval = f" (95% interval over {over}: {between(fidelity.interval, 1)})" if fidelity.interval else ""
    text = (
        f"The search fidelity of {result['model']['label']} to {result['compare']['label']} is {fidelity.value:.1f} "
        f"out of 100{interval}. Of the reference model's ten results for a query, {shared.value / 10:.1f} are among "
        f"this model's ten on average; the reference model's first result is among them for "
        f"{whole_share(first.value)} of the queries. As a rule of thumb:"
    )
    return verdict(LEVELS, fidelity.value, text, _cautions(result, select(of_model, SEARCH_FIDELITY)))


def expectation_of(level: str) -> str:
    """What to expect of a model that reaches the level of this name."""
    return next(one.expectation for one in LEVELS if one.name == level)


def _cautions(result: Mapping[str, Any], scores: Sequence[Score]) -> Iterator[str]:
    whole, *kinds = scores
    worst = min(kinds, key=lambda score: score.value, default=whole)
    if whole.value - worst.value > WORSE_KIND:
        kind = "the queries of your log" if worst.part == LOG else f"queries of the kind {worst.part}"
        yield f"{kind} lose most ({worst.value:.1f})"
    if result["queries"] < FEW_QUERIES:
        yield f"only {result['queries']:,} queries: see the interval"
    if result["clusters"] < min(FEW_CLUSTERS, result["queries"]):
        yield f"the queries come from only {result['protocol']['resampled']}: the interval is somewhat too narrow"
    if result["passages"] < FEW_PASSAGES:
        yield f"only {result['passages']:,} passages: among more passages, the models share fewer results"
    if result["queries_among_passages"] > QUERIES_AMONG_PASSAGES * result["queries"]:
        yield (
            f"{result['queries_among_passages']:,} of the queries are also passages, which any model finds first: for "
            "other queries, the models share fewer results"
        )
