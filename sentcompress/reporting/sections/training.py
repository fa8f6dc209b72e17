"""Training section: loss and dev curves, and the variance explained by projections."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sentcompress.models.shape import told_sizes
from sentcompress.numeric import amount, number
from sentcompress.reporting.charts import Line, curves
from sentcompress.reporting.evidence import Evidence, Source, Student, sources
from sentcompress.reporting.parts import Chart, Section, Table

# In a line of the log, the loss terms are between these two keys.
BEFORE_TERMS, BEHIND_TERMS = "epoch", "sentences_per_second"


def section(evidence: Evidence) -> Section:
    """All students and projections."""
    return Section(
        "training",
        "Training",
        "Losses of different methods consist of different terms: compare the shape of the curves, not the values.",
        charts=[*_loss(evidence), *_dev(evidence), *_variance(evidence)],
        tables=[_table(evidence)] if evidence.students else [],
        missing=[] if evidence.projections else ["sentcompress fit-pca"],
    )


def loss_of(line: Mapping[str, Any]) -> float | None:
    """The sum of the loss terms in a line of the log; None if there are none."""
    if BEHIND_TERMS not in line:
        return None
    names = list(line)
    return float(sum(line[name] for name in names[names.index(BEFORE_TERMS) + 1 : names.index(BEHIND_TERMS)]))


def _loss(evidence: Evidence) -> list[Chart]:
    lines, used = [], []
    for student in evidence.students:
        points = [(line["step"], loss) for line in student.log if (loss := loss_of(line)) is not None]
        if points:
            lines.append(_line(evidence, student, points))
            used.append(student)
    # The axis is logarithmic unless a loss is negative, as the logarithm of a kernel can be.
    positive = all(value > 0 for line in lines for value in line.y)
    caption = "Training loss, averaged over the steps between two log entries."
    draw = partial(curves, lines, x="step", y="loss", log_y=_plain if positive else None)
    return [Chart("loss", "Loss", caption, draw, sources(used))] if lines else []


def _dev(evidence: Evidence) -> list[Chart]:
    """A figure for each dev protocol, because scores of different protocols are not comparable."""
    by_protocol: dict[str, list[Student]] = {}
    for student in evidence.students:
        if any("dev" in line for line in student.log):
            by_protocol.setdefault(str(student.artifact.facts.get("dev_protocol", "")), []).append(student)
    charts = []
    for number_, (protocol, students) in enumerate(by_protocol.items()):
        lines = [_line(evidence, s, [(line["step"], line["dev"]) for line in s.log if "dev" in line]) for s in students]
        name = f"dev-{number_ + 1}" if number_ else "dev"
        draw = partial(curves, lines, x="step", y="dev score")
        charts.append(Chart(name, "Dev score", f"Used for checkpoint selection: {protocol}.", draw, sources(students)))
    return charts


def _variance(evidence: Evidence) -> list[Chart]:
    lines = []
    for number_, projection in enumerate(evidence.projections):
        ratios = projection.facts.get("explained_variance_ratio")
        if ratios:
            kept = [100 * value for value in itertools.accumulate(ratios)]
            name, colour = projection.name, f"series{number_ % 8 + 1}"
            lines.append((projection, Line(name, range(1, len(kept) + 1), kept, colour)))
    if not lines:
        return []
    dimension = lines[0][0].facts.get("teacher_dimension")
    return [
        Chart(
            "pca-variance",
            "Explained variance",
            f"Percentage of the variance of the teacher's vectors ({dimension} dimensions) that the first n principal "
            "components explain.",
            partial(curves, [line for _, line in lines], x="components", y="explained variance, %"),
            [Source.of(projection) for projection, _ in lines],
        )
    ]


def _line(evidence: Evidence, student: Student, points: Sequence[tuple[float, float]]) -> Line:
    x, y = zip(*points, strict=True)
    return Line(student.name, x, y, evidence.colour(student.artifact.reference))


def _plain(value: float) -> str:
    return f"{value:g}"


def _table(evidence: Evidence) -> Table:
    columns = ("student", "method", "made from", "parameters", "dimensions", "dev score", "best step", "minutes")
    rows = []
    for student in evidence.students:
        facts = student.artifact.facts
        seconds = facts.get("training_seconds")
        rows.append(
            [
                student.name,
                str(facts.get("method", "")),
                _made_from(facts),
                amount(facts.get("parameters")),
                number(facts.get("dimension")),
                number(facts.get("dev")),
                number(facts.get("best_step")),
                number(None if seconds is None else seconds / 60, 1),
            ]
        )
    return Table("Students", columns, rows, sources(evidence.students))


def _made_from(facts: Mapping[str, Any]) -> str:
    """What a student started from, its teacher, and the sizes that it was cut to."""
    sizes = told_sizes(facts)
    cut = f", cut to {' and '.join(sizes)}" if sizes else ""
    return f"{facts.get('student', '')} of {str(facts.get('teacher', '')).rpartition('/')[2]}{cut}"
