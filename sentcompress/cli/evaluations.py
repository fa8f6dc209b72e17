"""The generic output of an evaluation: a table of its scores, and the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.evaluation.results import read_evaluation
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> None:
    """Show all scores of an evaluation that has no output of its own."""
    evaluation = read_evaluation(artifact)
    render.print_scores(evaluation.scores, evaluation.labels, evaluation.kind.what, evaluation.kind.title)
    closing(artifact)


def closing(artifact: Artifact, remarks: Sequence[str] = ()) -> None:
    """Show the protocol, then the remarks."""
    render.print_facts({"protocol": artifact.facts["protocol"]["statement"]})
    if remarks:
        render.print_text("\n".join(remarks))


def cautions_of(verdict: Mapping[str, Any]) -> list[str]:
    """The cautions of a verdict as remarks."""
    return [f"Caution: {caution}." for caution in verdict["cautions"]]
