"""Index kinds beside exact search on the same vectors, and one model beside another: what each of them loses."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sentcompress.evaluation.bootstrap import mean_interval, paired_mean_interval
from sentcompress.evaluation.index import BuiltIndex, build_index, exact_search
from sentcompress.evaluation.index_plan import IndexSettings, Plan, plan_index
from sentcompress.evaluation.retrieval import Floats, Grades, in_order, overlap, scores_of_queries
from sentcompress.evaluation.sts import share_kept
from sentcompress.evaluation.timing import alternate, percentiles
from sentcompress.evaluation.vector_rows import VectorRows, Vectors
from sentcompress.progress import SILENT, Reporter

# The batch that is timed; the time is stated for so many queries. Those that are also timed one by one.
TIMED_QUERIES = 1000
SINGLE_QUERIES = 200
PER_THOUSAND = "milliseconds_per_1000_queries"


@dataclass(frozen=True)
class Searched:
    """Normalised vectors of one model: documents [N, D] and queries [Q, D]."""

    documents: VectorRows
    queries: Vectors


@dataclass(frozen=True)
class Task:
    """What is looked for, and how it is measured.

    Attributes:
        grades: of each query, document -> grade above zero.
        name_of: the id of a document, which decides between equal scores.
        main: the metric that intervals are given for.
        depth: documents that every search returns.
        rounds: timed searches of the batch; their median counts.
    """

    grades: Grades
    name_of: Callable[[int], bytes]
    main: str
    depth: int
    rounds: int = 5
    seed: int = 0

    @property
    def timed(self) -> list[int]:
        """The queries of the timed batch, drawn from all of them, those with nothing to find included."""
        count = min(TIMED_QUERIES, len(self.grades))
        drawn = np.random.default_rng(self.seed).choice(len(self.grades), size=count, replace=False)
        return [int(query) for query in np.sort(drawn)]


@dataclass
class Comparison:
    """Searches of one model, `model`, or of two, `model` and `compare`. All scores it gives are x 100."""

    searched: Mapping[str, Searched]
    task: Task
    reporter: Reporter = SILENT
    _ranked: dict[str, Any] = field(default_factory=dict)
    _exact: dict[str, Mapping[str, Floats]] = field(default_factory=dict)

    def exact(self) -> dict[str, Any]:
        """Scores of search without an index: what is lost here is lost by the model."""
        facts: dict[str, Any] = {}
        for role, of in self.searched.items():
            with self.reporter.track("exact search", total=len(of.documents), unit="documents") as bar:
                found = exact_search(of.documents, of.queries, self.task.depth, bar)
            self._ranked[role] = in_order(found, self.task.name_of)
            self._exact[role] = scores_of_queries(self._ranked[role], self.task.grades)
            facts[role] = self._means(self._exact[role])
        return facts | self._beside(self._exact)

    def index(self, kind: str, settings: IndexSettings) -> dict[str, Any]:
        """One kind for all models: built, searched for the score, then timed in turn. `exact` comes first."""
        plans = {
            role: plan_index(kind, settings, *of.documents.shape, self.task.depth) for role, of in self.searched.items()
        }
        built: dict[str, BuiltIndex] = {}
        scores: dict[str, Mapping[str, Floats]] = {}
        entry: dict[str, Any] = {"index": kind}
        for role, of in self.searched.items():
            built[role] = self._build(plans[role], of.documents)
            with self.reporter.track(f"{kind}: searching", total=len(of.queries), unit="queries") as bar:
                ranked = in_order(built[role].search(of.queries, self.task.depth), self.task.name_of)
                bar.advance(len(of.queries))
            scores[role] = scores_of_queries(ranked, self.task.grades)
            entry[role] = {
                # Of its own: what product codes are cut into hangs on the dimensions.
                "settings": plans[role].settings,
                **self._means(scores[role]),
                "index_loss": self._loss(role, scores[role]),
                "overlap_at_10": 100 * overlap(ranked, self._ranked[role]),
                "index_bytes": built[role].size,
                "bytes_per_document": round(built[role].size / len(of.documents), 2),
                "build_seconds": round(built[role].seconds, 3),
            }
        for role, times in self._times(built).items():
            entry[role] |= times
        return entry | self._beside(scores) | _ratios(entry)

    def _build(self, plan: Plan, documents: VectorRows) -> BuiltIndex:
        with self.reporter.track(f"{plan.kind}: building", total=len(documents), unit="documents") as bar:
            return build_index(plan, documents, bar)

    def _means(self, scores: Mapping[str, Floats]) -> dict[str, Any]:
        low, high = mean_interval(scores[self.task.main], self.task.seed)
        means: dict[str, Any] = {name: 100 * float(values.mean()) for name, values in scores.items()}
        return {**means, "interval": [100 * low, 100 * high]}

    def _loss(self, role: str, scores: Mapping[str, Floats]) -> dict[str, float]:
        """What the index alone loses: exact search minus this one."""
        exact = self._exact[role]
        return {name: 100 * float(exact[name].mean() - values.mean()) for name, values in scores.items()}

    def _beside(self, scores: Mapping[str, Mapping[str, Floats]]) -> dict[str, Any]:
        if "compare" not in scores:
            return {}
        ours, theirs = scores["model"], scores["compare"]
        kept = {name: share_kept(float(ours[name].mean()), float(theirs[name].mean())) for name in ours}
        main = self.task.main
        low, high = paired_mean_interval(ours[main], theirs[main], self.task.seed)
        return {
            "share_kept": kept["mrr_at_10"],
            "shares_kept": kept,
            "difference": {
                "metric": main,
                "value": 100 * float(ours[main].mean() - theirs[main].mean()),
                "interval": [100 * low, 100 * high],
            },
        }

    def _times(self, built: Mapping[str, BuiltIndex]) -> dict[str, dict[str, float]]:
        timed, depth = self.task.timed, self.task.depth
        queries = {role: of.queries[timed] for role, of in self.searched.items()}
        calls = {role: partial(index.search, queries[role], depth) for role, index in built.items()}
        batched = alternate(calls, self.task.rounds)
        single = _one_by_one(built, queries, depth)
        times = {}
        for role in built:
            per_thousand = 1000 * statistics.median(batched[role]) * TIMED_QUERIES / len(timed)
            tail = percentiles(single[role])
            times[role] = {
                PER_THOUSAND: round(per_thousand, 3),
                "milliseconds_p50": round(tail["p50"], 4),
                "milliseconds_p95": round(tail["p95"], 4),
            }
        return times


def _one_by_one(built: Mapping[str, BuiltIndex], queries: Mapping[str, Vectors], depth: int) -> dict[str, list[float]]:
    """Seconds of single searches; the models take turns, and who goes first changes."""
    seconds: dict[str, list[float]] = {role: [] for role in built}
    roles = list(built)
    for number in range(min(SINGLE_QUERIES, len(queries[roles[0]]))):
        for role in roles if number % 2 == 0 else reversed(roles):
            query = queries[role][number : number + 1]
            start = time.perf_counter()
            built[role].search(query, depth)
            seconds[role].append(time.perf_counter() - start)
    return seconds


def _ratios(entry: Mapping[str, Any]) -> dict[str, float | None]:
    if "compare" not in entry:
        return {}
    ours, other = entry["model"], entry["compare"]
    return {
        "times_smaller": other["index_bytes"] / ours["index_bytes"],
        "times_faster": other[PER_THOUSAND] / ours[PER_THOUSAND] if ours[PER_THOUSAND] > 0 else None,
    }
