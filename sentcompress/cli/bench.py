"""The output of `sentcompress bench`."""

from __future__ import annotations

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.evaluations import closing
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> str:
    """Show sizes, then the measurements of every runtime; returns the next command."""
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.score import select, size_scores, sizes_of

    result, evaluation = artifact.facts, read_evaluation(artifact)
    references = {role: str(model["reference"]) for role, model in evaluation.models.items()}
    sizes = size_scores(references, {role: sizes_of(model) for role, model in evaluation.models.items()})
    render.print_scores(sizes, evaluation.labels, "size", "size")
    for entry in result["runtimes"]:
        scores = select(evaluation.scores, part=entry["runtime"])
        render.print_scores(scores, evaluation.labels, entry["runtime"], f"{entry['runtime']}: {entry['what']}")
    closing(artifact)
    return f"sentcompress report --work {shell_word(call.work)}"
