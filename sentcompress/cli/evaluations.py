"""The output of evaluations: tables of scores, and the protocol; each function returns the next command, if any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.evaluation.fidelity_verdict import retrieval_of_the_same
from sentcompress.evaluation.metrics import (
    ALIGNMENT,
    CORRELATION,
    INDEX_BYTES,
    INDEX_LOSS,
    OVERLAP,
    SEARCH_TIME,
    SPEARMAN,
    UNIFORMITY,
)
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import select, size_scores, sizes_of
from sentcompress.evaluation.tables import grid, languages_table, short
from sentcompress.numeric import measured
from sentcompress.plain_text import shell_word, shortened
from sentcompress.store import Artifact, WorkDirectory

# The settings of an index, in the order of display.
SETTINGS = ("nlist", "nprobe", "links", "ef_construction", "ef_search", "segments", "bits", "candidates", "rescore")
# Characters of a sentence shown in a table.
SHOWN = 60


def show(artifact: Artifact, call: Call) -> None:
    """Show all scores of an evaluation that has no output of its own."""
    evaluation = read_evaluation(artifact)
    render.print_scores(evaluation.scores, evaluation.labels, evaluation.kind.what, evaluation.kind.title)
    _closing(artifact)


def _sts(artifact: Artifact, call: Call) -> None:
    """Show the scores of every set and subset, and alignment and uniformity if measured."""
    evaluation = read_evaluation(artifact)
    labels, what = evaluation.labels, evaluation.kind.what
    render.print_scores(select(evaluation.scores, SPEARMAN), labels, what, "STS, Spearman x 100")
    spread = [score for score in evaluation.scores if score.metric in (ALIGNMENT, UNIFORMITY)]
    if spread:
        render.print_scores(spread, labels, "metric", f"{spread[0].data}, lower is better")
    _closing(artifact)


def _search(artifact: Artifact, call: Call) -> None:
    """Show the scores, those by kind of query, and the verdict."""
    result, evaluation = artifact.facts, read_evaluation(artifact)
    _print_compared(evaluation, f"{result['queries']:,} queries, {result['passages']:,} passages")
    _closing(artifact, result["verdict"])


def _bench(artifact: Artifact, call: Call) -> str:
    """Show sizes, then the measurements of every runtime."""
    result, evaluation = artifact.facts, read_evaluation(artifact)
    references = {role: str(model["reference"]) for role, model in evaluation.models.items()}
    sizes = size_scores(references, {role: sizes_of(model) for role, model in evaluation.models.items()})
    render.print_scores(sizes, evaluation.labels, "size", "size")
    for entry in result["runtimes"]:
        scores = select(evaluation.scores, part=entry["runtime"])
        render.print_scores(scores, evaluation.labels, entry["runtime"], f"{entry['runtime']}: {entry['what']}")
    _closing(artifact)
    return f"sentcompress report --work {shell_word(call.work)}"


def _retrieval(artifact: Artifact, call: Call) -> None:
    """Show the main metric by index, then all metrics, then the size and time of every index."""
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
    _closing(artifact)


def _settings(result: Mapping[str, Any]) -> dict[str, str]:
    """Index kind -> its settings, for the model's index."""
    found = {entry["index"]: entry["settings"]["model"] for entry in result["indexes"]}
    return {kind: ", ".join(f"{key} {of[key]}" for key in SETTINGS if key in of) for kind, of in found.items() if of}


def _fidelity(artifact: Artifact, call: Call) -> None:
    """Show the scores, agreement by length, the geometry of both models' vectors, disagreements and the verdict."""
    result, evaluation = artifact.facts, read_evaluation(artifact)
    heads = _print_compared(evaluation, f"{result['sentences']:,} sentences")
    render.print_facts(_agreement(result))
    render.print_table(
        [f"length in {result['unit_of_length']}", "sentences", "neighbours shared, %"],
        [_bucket(bucket) for bucket in result["neighbours"]["by_length"]],
    )
    render.print_table(["geometry of each model", *heads], _shapes(result["model"], result["compare"]))
    if result["disagreements"]:
        render.print_table(
            ["where the models disagree most", "", *heads],
            [_disagreement(pair) for pair in result["disagreements"]],
        )
    # Retrieval results of the same two models in this work directory.
    work = WorkDirectory(artifact.path.parents[1])
    _closing(artifact, result["verdict"], retrieval_of_the_same(artifact, work.newest("evaluations")))


def _agreement(result: Mapping[str, Any]) -> dict[str, Any]:
    near, cosine = result["neighbours"], result["cosine_to_compared"]
    facts = {
        "shared by chance": f"{100 * near['by_chance']:.1f}%",
        "cosine of each sentence": result["cosine_is_to"],
    }
    if cosine:
        facts["cosine of each sentence"] = (
            f"mean {cosine['mean']:.4f}, 5th percentile {cosine['percentile_5']:.4f} (to {result['cosine_is_to']})"
        )
    return facts


def _bucket(bucket: Mapping[str, Any]) -> list[Any]:
    name = f"{bucket['name']}, {bucket['shortest']} to {bucket['longest']}"
    return [name, bucket["sentences"], 100 * bucket["overlap"]]


def _shapes(ours: Mapping[str, Any], other: Mapping[str, Any]) -> list[list[Any]]:
    of_first = f"first {ours['dimensions_shown']} dimensions"
    metrics = {
        "anisotropy (mean cosine of pairs)": "anisotropy",
        "effective rank": "effective_rank",
        f"mean |correlation|, {of_first}": CORRELATION,
        f"mean |covariance|, {of_first}": "mean_absolute_covariance",
    }
    both = (ours, other)
    tokens = {"truncated sentences, %": "truncated_share", "unknown tokens, %": "unknown_share"}
    return [
        ["dimensions", *(of["dimension"] for of in both)],
        *([name, *(of["tokens"] and 100 * of["tokens"][key] for of in both)] for name, key in tokens.items()),
        *([name, *(measured(of[key]) for of in both)] for name, key in metrics.items()),
    ]


def _disagreement(pair: Mapping[str, Any]) -> list[Any]:
    first, second = (shortened(pair[side], SHOWN) for side in ("first", "second"))
    return [first, second, pair["model"], pair["compare"]]


def _print_compared(evaluation: Evaluation, what: str) -> list[str]:
    """Print the scores of a model that was compared with another; returns the short names of both."""
    heads = [short(label) for label in evaluation.labels.values()]
    title = f"{heads[0]} compared with {heads[1]}, {what}"
    render.print_scores(evaluation.scores, evaluation.labels, evaluation.kind.what, title)
    return heads


def _closing(artifact: Artifact, verdict: Mapping[str, Any] | None = None, remarks: Sequence[str] = ()) -> None:
    """Show the protocol, then the verdict with the remarks and its cautions."""
    render.print_facts({"protocol": read_evaluation(artifact).statement})
    if verdict:
        cautions = [f"Caution: {caution}." for caution in verdict["cautions"]]
        render.print_text("\n".join([verdict["text"], *remarks, *cautions]))


SHOW: Mapping[str, Callable[[Artifact, Call], str | None]] = {
    "bench": _bench,
    "eval-fidelity": _fidelity,
    "eval-retrieval": _retrieval,
    "eval-search": _search,
    "eval-sts": _sts,
}
