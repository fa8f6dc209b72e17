"""Retrieval section: loss of the model, loss of the index, and cost of each index."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sentcompress.evaluation.metrics import INDEX_BYTES, INDEX_LOSS, METRICS, SEARCH_TIME
from sentcompress.evaluation.results import Evaluation
from sentcompress.evaluation.retrieval import EXACT
from sentcompress.evaluation.score import MODEL, Score, select
from sentcompress.evaluation.tables import kept_or_gained, languages_table
from sentcompress.numeric import between, size
from sentcompress.reporting.charts import HorizontalLine, Point, scatter
from sentcompress.reporting.drawing import MARKERS
from sentcompress.reporting.evidence import Evidence, sources
from sentcompress.reporting.parts import Chart, Section, Table
from sentcompress.reporting.score_section import score_section, score_tables

COLUMNS = ("index", "model", "{metric}", "95% interval", "kept", "loss of the index", "size", "ms per 1,000 queries")


def section(evidence: Evidence) -> Section:
    """All retrieval evaluations, with a figure for each data set."""
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
    """The names, numbered where different data sets share one."""
    return [n if names.count(n) == 1 else f"{n} ({names[:place].count(n) + 1})" for place, n in enumerate(names)]


def model_name(evidence: Evidence, model: Mapping[str, Any]) -> str:
    """The name of a model, with the model that encoded the documents if it is another one, and how they are stored."""
    name = evidence.names[str(model["reference"])]
    by = model.get("documents_by")
    if not by:
        return name
    parts = [
        *([evidence.shown(by)] if by["digest"] != model["digest"] else []),
        *([by["store"]] if "store" in by else []),
    ]
    return f"{name} (documents: {', '.join(parts)})"


def _tables(evidence: Evidence, name: str, found: list[Evaluation]) -> list[Table]:
    """A table of exact search for all models, then a table of indexes for each evaluation."""
    main = METRICS[found[0].scores[0].metric]
    together = [table for table in score_tables(evidence, found, name) if main.title in table.columns]
    spoken = [_by_language(one) for one in found if "languages" in one.facts]
    return [*together, *spoken, *(_table(evidence, one) for one in found)]


def _by_language(evaluation: Evaluation) -> Table:
    columns, rows = languages_table(evaluation.facts["languages"], evaluation.labels)
    title = f"{evaluation.scores[0].of.title} by language: {evaluation.scores[0].data}, exact search"
    return Table(title, columns, rows, sources([evaluation]))


def _table(evidence: Evidence, evaluation: Evaluation) -> Table:
    facts = evaluation.facts
    metric = evaluation.scores[0].metric
    rows = [_row(evidence, evaluation, score) for score in select(evaluation.scores, metric)]
    columns = [column.format(metric=METRICS[metric].title) for column in COLUMNS]
    name, documents = model_name(evidence, facts[MODEL]), f"{facts['documents']:,} documents"
    queries = f"{facts['judged_queries']:,} queries with an answer"
    title = f"Indexes: {name} on {evaluation.scores[0].data} ({documents}, {queries})"
    title += f", {runtime}" if (runtime := facts["protocol"].get("runtime")) else ""
    return Table(title, columns, rows, sources([evaluation]), heads=2, folded=True)


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
    """The settings of a score's index; empty for exact search."""
    found = (entry["settings"][score.role] for entry in evaluation.facts["indexes"] if entry["index"] == score.part)
    settings: Mapping[str, Any] = next(found, {})
    return settings


def _kinds(found: Sequence[Evaluation]) -> list[str]:
    """The distinct index kinds of the evaluations."""
    return list(dict.fromkeys(str(entry["index"]) for of in found for entry in of.facts["indexes"]))


def _chart(evidence: Evidence, name: str, found: list[Evaluation]) -> Chart:
    """Quality against index size, with exact search as dashed lines."""
    metric = found[0].scores[0].metric
    kinds = _kinds(found)
    points: dict[tuple[str, str, str], Point] = {}
    levels: dict[str, HorizontalLine] = {}
    for evaluation in found:
        for score in select(evaluation.scores, metric):
            shown, colour = model_name(evidence, evaluation.facts[score.role]), evidence.colour(score.model)
            if score.part == EXACT:
                levels[shown] = HorizontalLine(f"{shown}, exact", score.value, colour)
                continue
            (bytes_,) = select(evaluation.scores, INDEX_BYTES, part=score.part, role=score.role)
            marker = MARKERS[kinds.index(score.part) % len(MARKERS)]
            place = shown, score.part, str(_settings(evaluation, score))
            points[place] = Point(bytes_.value, score.value, colour, marker)
    keys = [(MARKERS[number % len(MARKERS)], kind) for number, kind in enumerate(kinds)]
    label = METRICS[metric].label
    return Chart(
        f"retrieval-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}",
        f"{label} against index size: {name}",
        "Colours are models, markers are kinds of index, dashed lines are exact search. Better is up and to the left.",
        partial(
            scatter,
            list(points.values()),
            x="index size",
            y=f"{label} x 100",
            log_x=size,
            levels=list(levels.values()),
            keys=keys,
        ),
        sources(found),
    )
