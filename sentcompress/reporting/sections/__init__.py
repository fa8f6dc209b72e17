"""The sections of a report, one module each, and their order. Sections select what to show; they read no files.

An evaluation without a module here gets the generic section of `reporting.score_section`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from sentcompress.evaluation.registry import EVALUATIONS
from sentcompress.reporting.evidence import Evidence
from sentcompress.reporting.parts import Report, Section
from sentcompress.reporting.score_section import score_section
from sentcompress.reporting.sections import compression, fidelity, overview, retrieval, speed, sts, training
from sentcompress.reporting.summary import order

# Evaluations with a section of their own.
DETAILED: Mapping[str, Callable[[Evidence], Section]] = {
    "sts": sts.section,
    "retrieval": retrieval.section,
    "fidelity": fidelity.section,
    "bench": speed.section,
}


def compose(evidence: Evidence, made: datetime, about: str) -> Report:
    """Compose the sections; nothing is drawn yet.

    Args:
        about: reference of the model that the report is about.
    """
    names = list(dict.fromkeys([*EVALUATIONS, *order(evidence)]))
    measured = [DETAILED[name](evidence) if name in DETAILED else score_section(evidence, name) for name in names]
    newest_first = list(reversed(evidence.compressions))
    newest_first.sort(key=lambda one: about not in one.models)
    compressed = [compression.section(evidence, one) for one in newest_first]
    shown = [*compressed, overview.section(evidence), *measured, training.section(evidence)]
    return Report(
        f"{evidence.names[about]}: sentcompress report",
        overview.heading(evidence, about),
        overview.verdict(evidence, about),
        made,
        [one for one in shown if one.charts or one.tables or one.quotes or one.missing],
        evidence,
    )
