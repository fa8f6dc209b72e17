"""Speed section: speed, size and memory in every runtime."""

from __future__ import annotations

from sentcompress.evaluation.metrics import (
    DISK_BYTES,
    LATENCY_P50,
    LATENCY_P95,
    LATENCY_P99,
    MODEL_MEMORY,
    PASS_SECONDS,
    PEAK_MEMORY,
    SPEED,
    SPEED_SINGLE,
)
from sentcompress.evaluation.results import Evaluation
from sentcompress.evaluation.score import MODEL
from sentcompress.evaluation.tables import grid
from sentcompress.reporting.evidence import Evidence, sources
from sentcompress.reporting.parts import Section, Table
from sentcompress.reporting.score_section import score_section

SHOWN = (
    SPEED,
    SPEED_SINGLE,
    LATENCY_P50,
    LATENCY_P95,
    LATENCY_P99,
    DISK_BYTES,
    PEAK_MEMORY,
    MODEL_MEMORY,
    PASS_SECONDS,
)


def section(evidence: Evidence) -> Section:
    """All bench runs."""
    tables = [_table(evidence, evaluation) for evaluation in evidence.of_kind("bench")]
    return score_section(evidence, "bench", tables=tables)


def _table(evidence: Evidence, evaluation: Evaluation) -> Table:
    names = {role: evidence.names[str(model["reference"])] for role, model in evaluation.models.items()}
    scores = [score for metric in SHOWN for score in evaluation.scores if score.metric == metric]
    columns, rows = grid(scores, names, evaluation.kind.what)
    preset = evaluation.facts["protocol"].get("preset")
    title = f"{names[MODEL]}, {preset}" if preset else names[MODEL]
    return Table(title, columns, rows, sources([evaluation]), heads=2)
