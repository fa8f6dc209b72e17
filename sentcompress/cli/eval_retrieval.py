"""The output of `sentcompress eval-retrieval`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.evaluations import closing
from sentcompress.store import Artifact

# In the order of display.
SETTINGS = ("nlist", "nprobe", "links", "ef_construction", "ef_search", "segments", "bits", "candidates", "rescore")


def show(artifact: Artifact, call: Call) -> None:
    """Show the main metric by index, then all metrics, then the size and time of every index."""
    from sentcompress.evaluation.metrics import INDEX_BYTES, INDEX_LOSS, OVERLAP, SEARCH_TIME
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.score import select
    from sentcompress.evaluation.tables import grid, languages_table

    result, evaluation = artifact.facts, read_evaluation(artifact)
    labels, main = evaluation.labels, evaluation.scores[0]
    judged = f"{result['judged_queries']:,} of {result['queries']:,} queries judged"
    title = f"{main.data}: {result['documents']:,} documents, {judged}; {main.of.title}"
    render.print_scores(select(evaluation.scores, main.metric), labels, "index", title)
    if "languages" in result:
        columns, rows = languages_table(result["languages"], labels)
        render.print_table(columns, rows, f"{main.of.title} by language, exact search")
    quality = [score for score in evaluation.scores if score.of.scale > 1 and score.metric not in (OVERLAP, INDEX_LOSS)]
    render.print_table(*grid(quality, labels, "index"), "All metrics", whole=["index"])
    costs = [score for score in evaluation.scores if score.of.gain or score.metric in (OVERLAP, INDEX_LOSS)]
    render.print_table(*grid(costs, labels, "index"), "Size and time", whole=["index"])
    if len(labels) > 1:
        gains = [score for score in costs if score.metric in (INDEX_BYTES, SEARCH_TIME)]
        render.print_scores(gains, labels, "index", "Gains")
    render.print_facts(_settings(result), "Settings")
    closing(artifact)


def _settings(result: Mapping[str, Any]) -> dict[str, str]:
    """Index kind -> its settings, for the model's index."""
    found = {entry["index"]: entry["settings"]["model"] for entry in result["indexes"]}
    return {kind: ", ".join(f"{key} {of[key]}" for key in SETTINGS if key in of) for kind, of in found.items() if of}
