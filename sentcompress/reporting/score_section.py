"""The generic section of an evaluation, built from its scores alone: tables, protocols, missing measurements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sentcompress.commands.spelling import DEFAULT_WORK
from sentcompress.evaluation.metrics import METRICS
from sentcompress.evaluation.registry import EVALUATIONS, command_for
from sentcompress.evaluation.results import Evaluation
from sentcompress.evaluation.score import COMPARE
from sentcompress.evaluation.tables import table_of_models
from sentcompress.reporting.evidence import Evidence, sources
from sentcompress.reporting.parts import Chart, Quotes, Section, Table


def score_section(
    evidence: Evidence,
    name: str,
    *,
    tables: Sequence[Table] | None = None,
    charts: Sequence[Chart] = (),
    quotes: Sequence[Quotes] = (),
    protocols: Sequence[str] | None = None,
) -> Section:
    """The section of all evaluations of one name.

    Args:
        tables: replace the generic tables.
        protocols: replace the protocol statements of the evaluations.
    """
    found = evidence.of_kind(name)
    kind = EVALUATIONS.get(name) or found[0].kind
    statements = [evaluation.statement for evaluation in found] if protocols is None else protocols
    return Section(
        name,
        kind.title,
        kind.text,
        charts=charts,
        tables=score_tables(evidence, found) if tables is None else tables,
        quotes=quotes,
        protocols=list(dict.fromkeys(statements)),
        missing=missing(evidence, name) if name in EVALUATIONS else (),
    )


def score_tables(evidence: Evidence, found: Sequence[Evaluation], title: str | None = None) -> list[Table]:
    """A table of headline scores for each protocol, data set and metric, compared models first."""
    groups: dict[tuple[Any, ...], list[Evaluation]] = {}
    for evaluation in found:
        places = tuple(dict.fromkeys(score.place for score in evaluation.headlines()))
        other = evaluation.models.get(COMPARE, {}).get("reference")
        groups.setdefault((evaluation.statement, evaluation.data, places, other), []).append(evaluation)
    return [table for group in groups.values() for table in _tables(evidence, group, title)]


def _tables(evidence: Evidence, group: Sequence[Evaluation], title: str | None) -> list[Table]:
    scores = [score for evaluation in group for score in evaluation.headlines()]
    split = group[0].facts["protocol"].get("split")
    tables = []
    for metric in dict.fromkeys(score.metric for score in scores):
        columns, rows = table_of_models(
            [score for score in scores if score.metric == metric], evidence.names, group[0].kind.what
        )
        shown = title or METRICS[metric].title + (f", {split} split" if split else "")
        tables.append(Table(", ".join(filter(None, (shown, group[0].use))), columns, rows, sources(group), heads=2))
    return tables


def missing(evidence: Evidence, name: str) -> list[str]:
    """A command for each student or guest that lacks this evaluation, except for the candidates of compressions."""
    seen = {model["reference"] for evaluation in evidence.of_kind(name) for model in evaluation.models.values()}
    work = None if evidence.work == DEFAULT_WORK else evidence.work
    made = {reference for one in evidence.compressions for reference in one.models}
    students = [student.artifact.reference for student in evidence.students]
    about = [reference for reference in students if reference not in made] + sorted(evidence.guests)
    lacking = [re.sub("^(students/|model:)", "", reference) for reference in about if reference not in seen]
    return [command_for(name, model, work) for model in lacking]
