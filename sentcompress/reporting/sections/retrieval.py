"""Retrieval: what the model loses, what the index loses, and what either costs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sentcompress.evaluation.measures import INDEX_BYTES, INDEX_LOSS, METRICS, SEARCH_TIME
from sentcompress.evaluation.results import Evaluation
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MODEL, Score, select
from sentcompress.evaluation.tables import kept_or_gained
from sentcompress.numeric import between, size
from sentcompress.reporting.charts import Level, Point, scatter
from sentcompress.reporting.drawing import MARKERS
from sentcompress.reporting.evidence import Evidence, Source
from sentcompress.reporting.parts import Chart, Section, Table
from sentcompress.reporting.scored import score_section, score_tables, sources

COLUMNS = ("index", "model", "{metric}", "95% interval", "kept", "lost by the index", "size", "ms, 1,000 queries")


def section(evidence: Evidence) -> Section:
    """All retrieval evaluations, a figure for each data set."""
    found = evidence.of_kind("retrieval")
    by_data: dict[tuple[str, frozenset[str]], list[Evaluation]] = {}
    for evaluation in found:
        by_data.setdefault((evaluation.scores[0].data, evaluation.data), []).append(evaluation)
    names = _distinct([name for name, _ in by_data])
    pairs = list(zip(names, by_data.values(), strict=True))
    return score_section(
        evidence,
        "retrieval",
        charts=[_chart(evidence, name, of) for name, of in pairs if len(_kinds(of)) > 1],
        tables=[table for name, of in pairs for table in _tables(evidence, name, of)],
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """The same names, numbered where different data have the same one."""
    return [n if names.count(n) == 1 else f"{n} ({names[:place].count(n) + 1})" for place, n in enumerate(names)]


def model_name(evidence: Evidence, model: Mapping[str, Any]) -> str:
    """A model, and whose vectors the documents have where they are another's."""
    name = evidence.names[str(model["reference"])]
    by = model.get("documents_by")
    return f"{name} (documents: {evidence.shown(by)})" if by else name


def _tables(evidence: Evidence, name: str, found: list[Evaluation]) -> list[Table]:
    """Exact search of all models in one table, then what each evaluation found of its indexes."""
    main = METRICS[found[0].scores[0].metric]
    together = [table for table in score_tables(evidence, found, name) if main.title in table.columns]
    return [*together, *(_table(evidence, one) for one in found)]


def _table(evidence: Evidence, evaluation: Evaluation) -> Table:
    facts = evaluation.facts
    metric = evaluation.scores[0].metric
    rows = [_row(evidence, evaluation, score) for score in select(evaluation.scores, metric)]
    columns = [column.format(metric=METRICS[metric].title) for column in COLUMNS]
    name, documents = model_name(evidence, facts[MODEL]), f"{facts['documents']:,} documents"
    queries = f"{facts['judged_queries']:,} queries with an answer"
    title = f"Indexes: {name} on {evaluation.scores[0].data} ({documents}, {queries})"
    return Table(title, columns, rows, [Source.of(evaluation.artifact)], heads=2, folded=True)


def _row(evidence: Evidence, evaluation: Evaluation, score: Score) -> list[str]:
    settings = ", ".join(f"{key} {value}" for key, value in _settings(evaluation, score).items())
    beside = {other.metric: other for other in select(evaluation.scores, part=score.part, role=score.role)}
    costs = [beside.get(metric) for metric in (INDEX_LOSS, INDEX_BYTES, SEARCH_TIME)]
    return [
        f"{score.part} ({settings})" if settings else score.part,
        model_name(evidence, evaluation.facts[score.role]),
        score.of.show(score.value),
        between(score.interval),
        kept_or_gained(score),
        *("" if cost is None else cost.of.show(cost.value) for cost in costs),
    ]


def _settings(evaluation: Evaluation, score: Score) -> Mapping[str, Any]:
    """Of the index that a score is of; exact search has none."""
    found = (entry["settings"][score.role] for entry in evaluation.facts["indexes"] if entry["index"] == score.part)
    settings: Mapping[str, Any] = next(found, {})
    return settings


def _kinds(found: Sequence[Evaluation]) -> list[str]:
    """The kinds of index; with a single one there is nothing to choose, and no figure."""
    return list(dict.fromkeys(str(entry["index"]) for of in found for entry in of.facts["indexes"]))


def _chart(evidence: Evidence, name: str, found: list[Evaluation]) -> Chart:
    """Quality against bytes: a colour a model, a marker an index, a dashed line exact search."""
    metric = found[0].scores[0].metric
    kinds = _kinds(found)
    points: dict[tuple[str, str, str], Point] = {}
    levels: dict[str, Level] = {}
    for evaluation in found:
        for score in select(evaluation.scores, metric):
            shown, colour = model_name(evidence, evaluation.facts[score.role]), evidence.colour(score.model)
            if score.part == EXACT:
                levels[shown] = Level(f"{shown}, exact", score.value, colour)
                continue
            (bytes_,) = select(evaluation.scores, INDEX_BYTES, part=score.part, role=score.role)
            marker = MARKERS[kinds.index(score.part) % len(MARKERS)]
            place = shown, score.part, str(_settings(evaluation, score))
            points[place] = Point(bytes_.value, score.value, colour, marker)
    keys = [(MARKERS[number % len(MARKERS)], kind) for number, kind in enumerate(kinds)]
    label = METRICS[metric].label
    return Chart(
        f"retrieval-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}",
        f"{label} against the bytes of the index: {name}",
        "A colour for each model, a marker for each kind of index, a dashed line for exact search with that model. "
        "Up and to the left is better.",
        partial(
            scatter,
            list(points.values()),
            x="bytes of the index",
            y=f"{label} x 100",
            log_x=size,
            levels=list(levels.values()),
            keys=keys,
        ),
        sources(found),
    )
