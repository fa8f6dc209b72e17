"""The output of `sentcompress eval-sts`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.evaluations import closing
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> None:
    """Show the scores of every set and subset, and alignment and uniformity if measured."""
    from sentcompress.evaluation.metrics import ALIGNMENT, SPEARMAN, UNIFORMITY
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.score import select

    evaluation = read_evaluation(artifact)
    labels, what = evaluation.labels, evaluation.kind.what
    render.print_scores(select(evaluation.scores, SPEARMAN), labels, what, "STS, Spearman x 100")
    spread = [score for score in evaluation.scores if score.metric in (ALIGNMENT, UNIFORMITY)]
    if spread:
        render.print_scores(spread, labels, "metric", f"{spread[0].data}, lower is better")
    closing(artifact)
