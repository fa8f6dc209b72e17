"""The output of `sentcompress eval-fidelity`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.call import Call
from sentcompress.cli.evaluations import cautions_of, closing
from sentcompress.evaluation.metrics import CORRELATION
from sentcompress.numeric import measured
from sentcompress.store import Artifact, WorkDirectory

# Characters of a sentence shown in a table.
SHOWN = 60


def show(artifact: Artifact, call: Call) -> None:
    """Show the scores, agreement by length, the geometry of both models' vectors, disagreements and the verdict."""
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.tables import short

    result, evaluation = artifact.facts, read_evaluation(artifact)
    labels = evaluation.labels
    heads = [short(label) for label in labels.values()]
    title = f"{heads[0]} compared with {heads[1]}, {result['sentences']:,} sentences"
    render.print_scores(evaluation.scores, labels, evaluation.kind.what, title)
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
    verdict = result["verdict"]
    closing(artifact, remarks=[verdict["text"], *_searched(artifact), *cautions_of(verdict)])


def _searched(artifact: Artifact) -> list[str]:
    """Retrieval results of the same two models in this work directory."""
    from sentcompress.evaluation.fidelity_verdict import retrieval_of_the_same

    work = WorkDirectory(artifact.path.parents[1])
    return retrieval_of_the_same(artifact, work.newest("evaluations"))


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
    first, second = (_cut(pair[side]) for side in ("first", "second"))
    return [first, second, pair["model"], pair["compare"]]


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
