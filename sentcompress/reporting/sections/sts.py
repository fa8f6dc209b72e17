"""Semantic textual similarity: scores with intervals, alignment against uniformity."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sentcompress.reporting.charts import Point, scatter
from sentcompress.reporting.evidence import Evaluation, Evidence, Source
from sentcompress.reporting.grouped import mean_entry, score_tables
from sentcompress.reporting.hints import missing
from sentcompress.reporting.parts import Chart, Section

METRIC = "spearman_cosine"


def section(evidence: Evidence) -> Section:
    """All STS evaluations of the work directory."""
    found = evidence.of_kind("sts")
    return Section(
        "sts",
        "Sentence similarity (STS)",
        "Spearman x 100 between the cosine of two sentences and people's grades. The difference is to the model that "
        "was scored beside it, on the same draws of the pairs; where its interval holds zero, nothing is proved lost.",
        charts=_alignment_chart(evidence, found),
        tables=score_tables(evidence, found, METRIC, "Spearman x 100", "set", _entries),
        protocols=list(dict.fromkeys(evaluation.facts["protocol"]["statement"] for evaluation in found)),
        missing=missing(evidence, "sts"),
    )


def _entries(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    sets: list[Mapping[str, Any]] = [
        {**entry, "name": f"{entry['name']} ({entry['pairs']:,} pairs)"} for entry in facts["sets"]
    ]
    return [*sets, mean_entry("mean of the sets", facts, METRIC)] if len(sets) > 1 else sets


def _alignment_chart(evidence: Evidence, found: list[Evaluation]) -> list[Chart]:
    measured = [evaluation for evaluation in found if evaluation.facts.get("alignment_uniformity")]
    if not measured:
        return []
    points: dict[str, Point] = {}
    for evaluation in measured:
        for role, model in evaluation.roles():
            reference, spread = model["reference"], evaluation.facts["alignment_uniformity"][role]
            points[reference] = Point(
                spread["uniformity"],
                spread["alignment"],
                evidence.colour(reference),
                evidence.marker(reference),
                evidence.names[reference],
                x_interval=spread.get("uniformity_interval"),
                y_interval=spread.get("alignment_interval"),
            )
    return [
        Chart(
            "alignment-uniformity",
            "Alignment against uniformity",
            "How near sentences of one meaning lie (alignment, pairs of STS-B graded above 4), and how evenly all "
            "sentences are spread (uniformity). Both are better when smaller: down and to the left.",
            partial(scatter, list(points.values()), x="uniformity", y="alignment"),
            [Source.of(evaluation.artifact) for evaluation in measured],
        )
    ]
