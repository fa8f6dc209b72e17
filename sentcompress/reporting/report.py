"""All sections of a report, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sentcompress.reporting.evidence import Evidence
from sentcompress.reporting.parts import Section
from sentcompress.reporting.sections import fidelity, overview, retrieval, speed, sts, training, transfer


@dataclass(frozen=True)
class Report:
    """What is put on a page.

    Attributes:
        title: one line.
        made: when.
        left_out: artifacts that do not count, with the reason.
    """

    title: str
    made: datetime
    sections: Sequence[Section]
    evidence: Evidence


def compose(evidence: Evidence, made: datetime) -> Report:
    """Put the sections together; nothing is drawn yet."""
    parts = (overview, sts, retrieval, transfer, fidelity, speed, training)
    return Report("What was lost and what was gained", made, [part.section(evidence) for part in parts], evidence)
