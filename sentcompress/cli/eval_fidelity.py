"""The output of `sentcompress eval-fidelity`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.intervals import short, shown
from sentcompress.cli.line import Call
from sentcompress.numeric import measured
from sentcompress.store import Artifact

SHOWN = 60


def show(artifact: Artifact, call: Call) -> None:
    """The scores, with intervals where they were asked for."""
    result = artifact.facts
    ours, other = result["model"], result["compare"]
    heads = [short(ours["label"]), short(other["label"])]
    render.print_facts(_agreement(result), f"{heads[0]} held against {heads[1]}, {result['sentences']:,} sentences")
    render.print_table(
        [f"length in {result['unit_of_length']}", "sentences", "neighbours kept, %"],
        [_bucket(bucket) for bucket in result["neighbours"]["by_length"]],
    )
    render.print_table(["each on its own", *heads], _shapes(ours, other))
    if result["disagreements"]:
        render.print_table(
            ["where they disagree most", "", *heads],
            [_disagreement(pair) for pair in result["disagreements"]],
        )
    render.print_facts({"protocol": result["protocol"]["statement"]})
    verdict = result["verdict"]
    render.print_text("\n".join([verdict["text"], *(f"Mind: {caution}." for caution in verdict["cautions"])]))


def _agreement(result: Mapping[str, Any]) -> dict[str, Any]:
    near, cosine = result["neighbours"], result["cosine_to_compared"]
    facts = {
        f"shared of {near['k']} nearest neighbours": _share(near["overlap"], near["interval"])
        + f"; by chance {100 * near['by_chance']:.1f}%",
        f"its nearest among the {near['k']} nearest": _share(near["nearest_found"], near["nearest_found_interval"]),
        "Spearman of all similarities": measured(result["spearman_of_similarities"]),
        "cosine of each sentence": result["cosine_is_to"],
    }
    if cosine:
        facts["cosine of each sentence"] = (
            f"{cosine['mean']:.4f} in the mean, 5% are below {cosine['percentile_5']:.4f} (to {result['cosine_is_to']})"
        )
    return facts


def _share(share: float, interval: Sequence[float] | None) -> str:
    bounds = shown(interval and [100 * bound for bound in interval], digits=1)
    return f"{100 * share:.1f}%" + (f" (95%: {bounds})" if bounds else "")


def _bucket(bucket: Mapping[str, Any]) -> list[Any]:
    name = f"{bucket['name']}, {bucket['shortest']} to {bucket['longest']}"
    return [name, bucket["sentences"], 100 * bucket["overlap"]]


def _shapes(ours: Mapping[str, Any], other: Mapping[str, Any]) -> list[list[Any]]:
    of_first = f"first {ours['dimensions_shown']} dimensions"
    measures = {
        "anisotropy (mean cosine of pairs)": "anisotropy",
        "effective rank": "effective_rank",
        f"mean |correlation|, {of_first}": "mean_absolute_correlation",
        f"mean |covariance|, {of_first}": "mean_absolute_covariance",
    }
    both = (ours, other)
    tokens = {"sentences that are cut off, %": "truncated_share", "unknown tokens, %": "unknown_share"}
    return [
        ["dimensions", *(of["dimension"] for of in both)],
        *([name, *(of["tokens"] and 100 * of["tokens"][key] for of in both)] for name, key in tokens.items()),
        *([name, *(measured(of[key]) for of in both)] for name, key in measures.items()),
    ]


def _disagreement(pair: Mapping[str, Any]) -> list[Any]:
    first, second = (_cut(pair[side]) for side in ("first", "second"))
    return [first, second, pair["model"], pair["compare"]]


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
