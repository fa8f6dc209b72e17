"""What the commands print of an evaluation: its scores in the one table, and how they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from sentcompress.store import Artifact


def show(artifact: Artifact, *, as_json: bool = False, quiet: bool = False) -> None:
    """Print an evaluation that has nothing but scores: all of them in one table."""
    from sentcompress.cli import render
    from sentcompress.evaluation.results import read_evaluation

    if as_json:
        print_document(artifact)
        return
    evaluation = read_evaluation(artifact)
    render.print_scores(evaluation.scores, evaluation.labels, evaluation.kind.what, evaluation.kind.title)
    closing(artifact, quiet=quiet)


def print_document(artifact: Artifact) -> None:
    """The whole document as JSON."""
    from sentcompress.cli import render

    render.print_json({**artifact.facts, "artifact": artifact.reference, "path": str(artifact.path)})


def closing(artifact: Artifact, *, quiet: bool, remarks: Sequence[str] = (), then: str | None = None) -> None:
    """How it was measured, remarks, where the result is, and the command that comes next."""
    from sentcompress.cli import render

    render.print_facts({"protocol": artifact.facts["protocol"]["statement"]})
    if remarks:
        render.print_text("\n".join(remarks))
    render.finished(artifact, then, as_json=False, quiet=quiet)
