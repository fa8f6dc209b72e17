"""Retrieval: what the model loses, what the index loses, and what either costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sentcompress.reporting.charts import Level, Point, scatter
from sentcompress.reporting.drawing import MARKERS
from sentcompress.reporting.evidence import Evaluation, Evidence, Source
from sentcompress.reporting.formats import between, number, share, size
from sentcompress.reporting.grouped import score_tables
from sentcompress.reporting.hints import missing
from sentcompress.reporting.parts import Chart, Section, Table

METRICS = {"mrr_at_10": "MRR@10", "ndcg_at_10": "nDCG@10", "recall_at_1": "Recall@1"}
PER_THOUSAND = "milliseconds_per_1000_queries"
COLUMNS = (
    "index",
    "model",
    "{metric} x 100",
    "95% interval",
    "kept",
    "lost by the index",
    "index",
    "ms, 1,000 queries",
)


def section(evidence: Evidence) -> Section:
    """All retrieval evaluations, a figure for each data set."""
    found = evidence.of_kind("retrieval")
    by_data: dict[tuple[str, frozenset[str]], list[Evaluation]] = {}
    for evaluation in found:
        by_data.setdefault((data_name(evaluation.facts), evaluation.data), []).append(evaluation)
    names = _distinct([name for name, _ in by_data])
    return Section(
        "retrieval",
        "Retrieval",
        "Every index stands beside exact search on the same vectors, so that what the model lost and what the index "
        "lost are told apart.",
        charts=[_chart(evidence, n, of) for n, of in zip(names, by_data.values(), strict=True) if len(_kinds(of)) > 1],
        tables=[
            table for name, of in zip(names, by_data.values(), strict=True) for table in _tables(evidence, name, of)
        ],
        protocols=list(dict.fromkeys(evaluation.facts["protocol"]["statement"] for evaluation in found)),
        missing=missing(evidence, "retrieval"),
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """The same names, numbered where different data have the same one."""
    return [n if names.count(n) == 1 else f"{n} ({names[:place].count(n) + 1})" for place, n in enumerate(names)]


def data_name(facts: Mapping[str, Any]) -> str:
    """The data set, with its split; evaluations of old did not say and were of question pairs."""
    data = facts.get("dataset", {"name": "question pairs"})
    return " ".join(str(part) for part in (data["name"], data.get("split")) if part)


def main_score(facts: Mapping[str, Any]) -> str:
    return str(facts.get("protocol", {}).get("main_score", "mrr_at_10"))


def model_name(evidence: Evidence, model: Mapping[str, Any]) -> str:
    """A model, and whose vectors the documents have where they are another's."""
    name = evidence.names[str(model["reference"])]
    by = model.get("documents_by")
    return f"{name} (documents: {evidence.shown(by)})" if by else name


def _roles(facts: Mapping[str, Any]) -> list[str]:
    return [role for role in ("compare", "model") if role in facts]


def _tables(evidence: Evidence, name: str, found: list[Evaluation]) -> list[Table]:
    """Exact search of all models in one table, then what each evaluation found of its indexes."""
    metric = main_score(found[0].facts)
    exact = [evaluation for evaluation in found if "exact" in evaluation.facts]
    head = f"{METRICS.get(metric, metric)} x 100"
    together = score_tables(evidence, exact, metric, head, "search", partial(_exact, metric))
    return [*(replace(table, title=name) for table in together), *(_table(evidence, one) for one in found)]


def _exact(metric: str, facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Exact search as an entry of `grouped.score_tables`."""
    exact, difference = facts["exact"], facts["exact"].get("difference")
    scores = {r: {metric: exact[r][metric], f"{metric}_interval": exact[r].get("interval")} for r in _roles(facts)}
    beside = difference and {metric: difference["value"], f"{metric}_interval": difference["interval"]}
    kept = exact.get("shares_kept", {}).get(metric)
    return [{"name": "exact search", **scores, "difference": beside, "share_kept": kept}]


def _table(evidence: Evidence, evaluation: Evaluation) -> Table:
    facts = evaluation.facts
    metric = main_score(facts)
    entries = [*([{"index": "exact search", **facts["exact"]}] if "exact" in facts else []), *facts["indexes"]]
    rows = [row for entry in entries for row in _rows(evidence, facts, entry, metric)]
    columns = [column.format(metric=METRICS.get(metric, metric)) for column in COLUMNS]
    name, documents = model_name(evidence, facts["model"]), f"{facts['documents']:,} documents"
    title = f"Indexes: {name} on {data_name(facts)} ({documents}, {facts['judged_queries']:,} queries with an answer)"
    # Evaluations of old had no exact search, and so nothing else to show.
    return Table(title, columns, rows, [Source.of(evaluation.artifact)], heads=2, folded="exact" in facts)


def _rows(evidence: Evidence, facts: Mapping[str, Any], entry: Mapping[str, Any], metric: str) -> Iterator[list[str]]:
    for role in _roles(facts):
        scores = entry[role]
        settings = ", ".join(f"{key} {value}" for key, value in _settings(entry, role).items())
        kept = entry.get("shares_kept", {}).get(metric, entry.get("share_kept")) if role == "model" else None
        yield [
            f"{entry['index']} ({settings})" if settings else str(entry["index"]),
            model_name(evidence, facts[role]),
            number(scores[metric]),
            between(scores.get("interval")),
            share(kept),
            number(scores.get("index_loss", {}).get(metric)),
            size(scores.get("index_bytes")),
            number(scores.get(PER_THOUSAND), 1),
        ]


def _settings(entry: Mapping[str, Any], role: str) -> Mapping[str, Any]:
    """Of an index; evaluations of old have the model's for both sides."""
    found: Mapping[str, Any] = entry[role].get("settings", entry.get("settings", {}))
    return found


def _kinds(found: Sequence[Evaluation]) -> list[str]:
    """The kinds of index; with a single one there is nothing to choose, and no figure."""
    return list(dict.fromkeys(str(entry["index"]) for of in found for entry in of.facts["indexes"]))


def _chart(evidence: Evidence, name: str, found: list[Evaluation]) -> Chart:
    """Quality against bytes: a colour a model, a marker an index, a dashed line exact search."""
    metric = main_score(found[0].facts)
    kinds = _kinds(found)
    points: dict[tuple[str, str, str], Point] = {}
    levels: dict[str, Level] = {}
    for evaluation in found:
        facts = evaluation.facts
        for role in _roles(facts):
            shown, colour = model_name(evidence, facts[role]), evidence.colour(facts[role]["reference"])
            for entry in facts["indexes"]:
                marker = MARKERS[kinds.index(entry["index"]) % len(MARKERS)]
                score = entry[role][metric]
                points[shown, entry["index"], str(_settings(entry, role))] = Point(
                    entry[role]["index_bytes"], score, colour, marker
                )
            if "exact" in facts:
                levels[shown] = Level(f"{shown}, exact", facts["exact"][role][metric], colour)
    keys = [(MARKERS[number % len(MARKERS)], kind) for number, kind in enumerate(kinds)]
    label = METRICS.get(metric, metric)
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
        [Source.of(evaluation.artifact) for evaluation in found],
    )
