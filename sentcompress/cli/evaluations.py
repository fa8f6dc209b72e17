"""What is shown of an evaluation: its scores in one table, and how they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.evaluation.results import read_evaluation
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> None:
    """All scores of an evaluation that has nothing else to show."""
    evaluation = read_evaluation(artifact)
    render.print_scores(evaluation.scores, evaluation.labels, evaluation.kind.what, evaluation.kind.title)
    closing(artifact)


def closing(artifact: Artifact, remarks: Sequence[str] = ()) -> None:
    """How it was measured, then remarks."""
    render.print_facts({"protocol": artifact.facts["protocol"]["statement"]})
    if remarks:
        render.print_text("\n".join(remarks))
