"""STS section: scores with intervals, and alignment against uniformity."""

from __future__ import annotations

from functools import partial

from sentcompress.evaluation.metrics import ALIGNMENT, UNIFORMITY
from sentcompress.evaluation.results import TEST, Evaluation
from sentcompress.evaluation.score import Score, select
from sentcompress.reporting.charts import Point, scatter
from sentcompress.reporting.evidence import Evidence, sources
from sentcompress.reporting.parts import Chart, Section
from sentcompress.reporting.score_section import score_section


def section(evidence: Evidence) -> Section:
    """All STS evaluations of the work directory."""
    return score_section(evidence, "sts", charts=_alignment_chart(evidence, evidence.of_kind("sts")))


def _alignment_chart(evidence: Evidence, found: list[Evaluation]) -> list[Chart]:
    measured = [evaluation for evaluation in found if select(evaluation.scores, ALIGNMENT)]
    if not measured:
        return []
    # STS-B has other pairs in other splits.
    measured = [evaluation for evaluation in measured if evaluation.split == TEST] or measured
    pairs: dict[str, tuple[Score, Score]] = {}
    for evaluation in measured:
        for near in select(evaluation.scores, ALIGNMENT):
            (spread,) = select(evaluation.scores, UNIFORMITY, role=near.role)
            pairs[near.model] = near, spread
    points = [
        Point(
            spread.value,
            near.value,
            evidence.colour(reference),
            evidence.marker(reference),
            evidence.names[reference],
            x_interval=spread.interval,
            y_interval=near.interval,
        )
        for reference, (near, spread) in pairs.items()
    ]
    return [
        Chart(
            "alignment-uniformity",
            "Alignment against uniformity",
            "Alignment: how close sentences with the same meaning are (pairs of STS-B scored above 4). Uniformity: how "
            "evenly all sentences are spread. Lower is better for both: down and to the left.",
            partial(scatter, points, x="uniformity", y="alignment"),
            sources(measured),
        )
    ]
