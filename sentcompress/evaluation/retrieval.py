"""Retrieval: index kinds compared with exact search on the same vectors, and one model with another."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.commands.shared import CUTOFF, IndexOptions
from sentcompress.evaluation.index import BuiltIndex, build_index, exact_search
from sentcompress.evaluation.index_plan import IndexPlan, plan_index
from sentcompress.evaluation.metrics import (
    BUILD_SECONDS,
    BYTES_PER_DOCUMENT,
    FIRST_RELEVANT,
    INDEX_BYTES,
    INDEX_LOSS,
    MRR,
    NDCG,
    OVERLAP,
    RECALLS,
    SEARCH_P50,
    SEARCH_P95,
    SEARCH_TIME,
)
from sentcompress.evaluation.ranking import Floats, Grades, first_relevant, in_order, overlap, scores_of_queries
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, Difference, Recorder, share_kept
from sentcompress.evaluation.stats import Resampling, mean_interval, paired_mean_interval
from sentcompress.evaluation.timing import alternate, in_turn, percentiles
from sentcompress.evaluation.vector_rows import VectorRows, Vectors
from sentcompress.progress import SILENT, Reporter

# Queries in the timed batch, for which the time is stated, and queries that are also timed one at a time.
TIMED_QUERIES = 1000
SINGLE_QUERIES = 200
# The part name of scores without an index.
EXACT = "exact search"
MAIN = {"pairs": MRR, "collection": NDCG, "entities": FIRST_RELEVANT}
DEPTHS = {"pairs": CUTOFF, "collection": max(RECALLS), "entities": CUTOFF}


@dataclass(frozen=True)
class Searched:
    """Vectors of one model, compared by inner product: documents [N, D] and queries [Q, D]."""

    documents: VectorRows
    queries: Vectors


@dataclass(frozen=True)
class RetrievalTask:
    """The relevance judgements, and how the search is measured.

    Attributes:
        grades: for each query, document -> grade above zero.
        name_of: document -> its id, which breaks ties.
        main: the metric reported with intervals.
        depth: documents returned per search.
        rounds: timed searches of the batch; the median is reported.
        bootstrap: bootstrap samples for the intervals, 0 for none.
    """

    grades: Grades
    name_of: Callable[[int], bytes]
    main: str
    depth: int
    rounds: int = 5
    seed: int = 0
    bootstrap: int = 1000

    @property
    def resampling(self) -> Resampling:
        """The bootstrap settings."""
        return Resampling(self.bootstrap, self.seed)

    @property
    def timed(self) -> list[int]:
        """The queries of the timed batch, sampled from all queries, including those without a relevant document."""
        count = min(TIMED_QUERIES, len(self.grades))
        drawn = np.random.default_rng(self.seed).choice(len(self.grades), size=count, replace=False)
        return [int(query) for query in np.sort(drawn)]


@dataclass
class Comparison:
    """Searches with one model (role `model`) or two (`model` and `compare`). Scores are recorded x 100.

    Attributes:
        data: the name of the data set.
        recorder: collects the scores.
    """

    searched: Mapping[str, Searched]
    task: RetrievalTask
    data: str
    recorder: Recorder
    reporter: Reporter = SILENT
    _ranked: dict[str, Any] = field(default_factory=dict)
    _exact: dict[str, Mapping[str, Floats]] = field(default_factory=dict)

    def exact(self) -> None:
        """Record the scores of exact search: differences between models here are due to the models alone."""
        for role, of in self.searched.items():
            with self.reporter.track("exact search", total=len(of.documents), unit="documents") as bar:
                found = exact_search(of.documents, of.queries, self.task.depth, bar)
            self._ranked[role] = in_order(found, self.task.name_of)
            self._exact[role] = self._scores(self._ranked[role])
        self._record(EXACT, self._exact)

    def index(self, kind: str, settings: IndexOptions) -> dict[str, Any]:
        """Build one kind of index for each model, score it, and time the models alternately. Call `exact` first.

        Returns:
            The kind, and the settings used for each role, which depend on the dimension.
        """
        plans = {
            role: plan_index(kind, settings, *of.documents.shape, self.task.depth) for role, of in self.searched.items()
        }
        built: dict[str, BuiltIndex] = {}
        scores: dict[str, Mapping[str, Floats]] = {}
        overlaps: dict[str, float] = {}
        for role, of in self.searched.items():
            built[role] = self._build(plans[role], of.documents)
            with self.reporter.track(f"{kind}: searching", total=len(of.queries), unit="queries") as bar:
                ranked = in_order(built[role].search(of.queries, self.task.depth), self.task.name_of)
                bar.advance(len(of.queries))
            scores[role] = self._scores(ranked)
            overlaps[role] = 100 * overlap(ranked, self._ranked[role])
        self._record(kind, scores)
        main = self.task.main
        losses = {r: 100 * float(self._exact[r][main].mean() - of[main].mean()) for r, of in scores.items()}
        self.recorder.add(self.data, INDEX_LOSS, losses, part=kind, shared=False)
        self.recorder.add(self.data, OVERLAP, overlaps, part=kind)
        self._record_costs(kind, built)
        return {"index": kind, "settings": {role: plan.settings for role, plan in plans.items()}}

    def by_language(self, languages: Sequence[str]) -> list[dict[str, Any]]:
        """The main score of exact search for each language and its mean over them. Call `exact` first.

        Args:
            languages: [Q] the language of each query.

        Returns:
            For each language in alphabetical order, then for MEAN: the number of judged queries, and the score of each
            role x 100; with a compared model, also the difference in percent of its score, as in SimTDE's table 3.
        """
        spoken = np.array([name for name, wanted in zip(languages, self.task.grades, strict=True) if wanted])
        scores = {role: 100 * of[self.task.main] for role, of in self._exact.items()}
        rows: list[dict[str, Any]] = [
            {
                "language": name,
                "queries": int((spoken == name).sum()),
                **{role: float(of[spoken == name].mean()) for role, of in scores.items()},
            }
            for name in sorted(set(spoken.tolist()))
        ]
        means = {role: statistics.fmean(row[role] for row in rows) for role in scores}
        rows.append({"language": MEAN, "queries": len(spoken), **means})
        if COMPARE in scores:
            rows = [{**row, "relative_percent": share_kept(row[MODEL], row[COMPARE]) - 100} for row in rows]
        return rows

    def _build(self, plan: IndexPlan, documents: VectorRows) -> BuiltIndex:
        with self.reporter.track(f"{plan.kind}: building", total=len(documents), unit="documents") as bar:
            return build_index(plan, documents, bar)

    def _scores(self, ranked: npt.NDArray[np.int64]) -> dict[str, Floats]:
        """All metrics of each judged query."""
        scores = scores_of_queries(ranked, self.task.grades)
        if self.task.main == FIRST_RELEVANT:
            scores[FIRST_RELEVANT] = first_relevant(ranked, self.task.grades)
        return scores

    def _record(self, part: str, scores: Mapping[str, Mapping[str, Floats]]) -> None:
        """Record all metrics, the main one first and with intervals."""
        main = self.task.main
        queries = len(scores[MODEL][main])
        for name in (main, *(name for name in scores[MODEL] if name != main)):
            of = {role: found[name] for role, found in scores.items()}
            values = {role: 100 * float(each.mean()) for role, each in of.items()}
            if name != main:
                self.recorder.add(self.data, name, values, part=part, count=queries)
                continue
            intervals = {role: mean_interval(each, self.task.resampling, 100) for role, each in of.items()}
            difference = None
            if COMPARE in of:
                paired = paired_mean_interval(of[MODEL], of[COMPARE], self.task.resampling, 100)
                difference = Difference(100 * float(of[MODEL].mean() - of[COMPARE].mean()), paired)
            self.recorder.add(
                self.data, name, values, part=part, count=queries, intervals=intervals, difference=difference
            )

    def _record_costs(self, kind: str, built: Mapping[str, BuiltIndex]) -> None:
        costs: dict[str, dict[str, float]] = {
            INDEX_BYTES: {role: index.size for role, index in built.items()},
            BYTES_PER_DOCUMENT: {
                role: round(index.size / len(self.searched[role].documents), 2) for role, index in built.items()
            },
            BUILD_SECONDS: {role: round(index.seconds, 3) for role, index in built.items()},
            **self._times(built),
        }
        for name, values in costs.items():
            self.recorder.add(self.data, name, values, part=kind)

    def _times(self, built: Mapping[str, BuiltIndex]) -> dict[str, dict[str, float]]:
        timed, depth = self.task.timed, self.task.depth
        queries = {role: of.queries[timed] for role, of in self.searched.items()}
        calls = {role: partial(index.search, queries[role], depth) for role, index in built.items()}
        batched = alternate(calls, self.task.rounds)
        single = _one_by_one(built, queries, depth)
        times: dict[str, dict[str, float]] = {SEARCH_TIME: {}, SEARCH_P50: {}, SEARCH_P95: {}}
        for role in built:
            per_thousand = 1000 * statistics.median(batched[role]) * TIMED_QUERIES / len(timed)
            tail = percentiles(single[role])
            times[SEARCH_TIME][role] = round(per_thousand, 3)
            times[SEARCH_P50][role] = round(tail["p50"], 4)
            times[SEARCH_P95][role] = round(tail["p95"], 4)
        return times


def _one_by_one(built: Mapping[str, BuiltIndex], queries: Mapping[str, Vectors], depth: int) -> dict[str, list[float]]:
    """Seconds per search of single queries; the models alternate, and so does the one that goes first."""
    seconds: dict[str, list[float]] = {role: [] for role in built}
    for number in range(min(SINGLE_QUERIES, len(queries[MODEL]))):
        for role in in_turn(built, number):
            query = queries[role][number : number + 1]
            start = time.perf_counter()
            built[role].search(query, depth)
            seconds[role].append(time.perf_counter() - start)
    return seconds
