"""Transfer: what a linear classifier finds in the vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.reporting.evidence import Evidence
from sentcompress.reporting.grouped import mean_entry, score_tables
from sentcompress.reporting.hints import missing
from sentcompress.reporting.parts import Section

METRIC = "accuracy"


def section(evidence: Evidence) -> Section:
    """All transfer evaluations."""
    found = evidence.of_kind("transfer")
    return Section(
        "transfer",
        "Transfer",
        "Accuracy of a logistic regression on frozen vectors: what a linear classifier finds in them.",
        tables=score_tables(evidence, found, METRIC, "accuracy x 100", "task", _entries),
        protocols=list(dict.fromkeys(evaluation.facts["protocol"]["statement"] for evaluation in found)),
        missing=missing(evidence, "transfer"),
    )


def _entries(facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tasks: list[Mapping[str, Any]] = list(facts["tasks"])
    return [*tasks, mean_entry("mean of the tasks", facts, METRIC)] if len(tasks) > 1 else tasks
