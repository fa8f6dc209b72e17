"""The sections of a report, in their order. An evaluation without a module here has a section of its scores alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from sentcompress.evaluation.kinds import EVALUATIONS
from sentcompress.reporting.evidence import Evidence
from sentcompress.reporting.parts import Report, Section
from sentcompress.reporting.scored import score_section
from sentcompress.reporting.sections import fidelity, overview, retrieval, speed, sts, training
from sentcompress.reporting.summary import order

# Evaluations of which more is known than their scores.
DETAILED: Mapping[str, Callable[[Evidence], Section]] = {
    "sts": sts.section,
    "retrieval": retrieval.section,
    "fidelity": fidelity.section,
    "bench": speed.section,
}


def compose(evidence: Evidence, made: datetime, about: str) -> Report:
    """Put the sections together; nothing is drawn yet.

    Args:
        about: the reference of the model that the report is asked for.
    """
    names = list(dict.fromkeys([*EVALUATIONS, *order(evidence)]))
    measured = [DETAILED[name](evidence) if name in DETAILED else score_section(evidence, name) for name in names]
    return Report(
        f"{evidence.names[about]}: sentcompress report",
        overview.heading(evidence, about),
        overview.verdict(evidence, about),
        made,
        [overview.section(evidence), *measured, training.section(evidence)],
        evidence,
    )
