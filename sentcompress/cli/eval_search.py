"""The output of `sentcompress eval-search`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.evaluations import cautions_of, closing
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> None:
    """Show the scores, those by kind of query, and the verdict."""
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.tables import short

    result, evaluation = artifact.facts, read_evaluation(artifact)
    labels = evaluation.labels
    heads = [short(label) for label in labels.values()]
    title = f"{heads[0]} compared with {heads[1]}, {result['queries']:,} queries, {result['passages']:,} passages"
    render.print_scores(evaluation.scores, labels, evaluation.kind.what, title)
    verdict = result["verdict"]
    closing(artifact, remarks=[verdict["text"], *cautions_of(verdict)])
