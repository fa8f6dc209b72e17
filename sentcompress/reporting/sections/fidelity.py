"""Fidelity without labels."""

from __future__ import annotations

from sentcompress.reporting.evidence import Evidence
from sentcompress.reporting.hints import missing
from sentcompress.reporting.parts import Section


def section(evidence: Evidence) -> Section:
    """All fidelity evaluations."""
    return Section(
        "fidelity",
        "Fidelity on your own sentences",
        "Without labels: how near the student's vectors and neighbours are to the teacher's.",
        missing=missing(evidence, "fidelity"),
    )
