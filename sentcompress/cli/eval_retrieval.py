"""The output of `sentcompress eval-retrieval`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.store import Artifact

METRICS = {"mrr_at_10": "MRR@10", "ndcg_at_10": "nDCG@10"} | {f"recall_at_{k}": f"R@{k}" for k in (1, 10, 100, 1000)}

# In the order in which a table shows them beside the kind.
SETTINGS = ("nlist", "nprobe", "links", "ef_construction", "ef_search", "segments", "bits", "candidates", "rescore")


def show(artifact: Artifact, call: Call) -> None:
    """The scores, with intervals where they were asked for."""
    result = artifact.facts
    _show(result)


def _show(result: Mapping[str, Any]) -> None:
    judged = f"{result['judged_queries']:,} of {result['queries']:,} queries judged"
    metrics = {key: shown for key, shown in METRICS.items() if key in result["exact"]["model"]}
    main = METRICS[result["protocol"]["main_score"]]
    render.print_table(
        ["index", "model", *metrics.values(), f"{main}, 95%", "% kept", "index loses"],
        [
            row
            for entry in ({"index": "exact", **result["exact"]}, *result["indexes"])
            for row in _scores(entry, result)
        ],
        f"{result['dataset']['name']}: {result['documents']:,} documents, {judged}; all x 100",
        whole=["index", *metrics.values(), f"{main}, 95%"],
    )
    render.print_table(
        ["index", "model", "dim", "index bytes", "vector bytes", "build s", "ms/1,000 queries", "p50 ms", "p95 ms"],
        [row for entry in result["indexes"] for row in _costs(entry, result)],
        "Bytes and times",
        whole=["index", "index bytes", "vector bytes", "ms/1,000 queries"],
    )
    for entry in result["indexes"] if "compare" in result else ():
        ratios = f"{entry['times_smaller']:.2f} times smaller, {entry['times_faster'] or 0:.2f} times faster"
        render.print_facts({entry["index"]: f"{result['model']['label']} is {ratios}; {main} {_difference(entry)}"})
    render.print_facts({"protocol": result["protocol"]["statement"]})


def _name(entry: Mapping[str, Any], role: str) -> str:
    """An index with its settings, such as the cells and probes of an inverted file."""
    settings = entry[role].get("settings", {})
    return f"{entry['index']} {'/'.join(str(settings[key]) for key in SETTINGS if key in settings)}".strip()


def _scores(entry: Mapping[str, Any], result: Mapping[str, Any]) -> list[list[Any]]:
    main = result["protocol"]["main_score"]
    return [
        [
            _name(entry, role),
            result[role]["label"],
            *(entry[role][key] for key in METRICS if key in entry[role]),
            "{:.2f} to {:.2f}".format(*entry[role]["interval"]),
            entry["shares_kept"][main] if role == "model" and "shares_kept" in entry else None,
            f"{entry[role]['index_loss'][main]:.2f}" if "index_loss" in entry[role] else None,
        ]
        for role in ("model", "compare")
        if role in result
    ]


def _costs(entry: Mapping[str, Any], result: Mapping[str, Any]) -> list[list[Any]]:
    keys = ("build_seconds", "milliseconds_per_1000_queries", "milliseconds_p50", "milliseconds_p95")
    return [
        [
            _name(entry, role),
            result[role]["label"],
            result[role]["dimension"],
            entry[role]["index_bytes"],
            result[role]["raw_vector_bytes"],
            *(entry[role][key] for key in keys),
        ]
        for role in ("model", "compare")
        if role in result
    ]


def _difference(entry: Mapping[str, Any]) -> str:
    difference = entry["difference"]
    low, high = difference["interval"]
    return f"{difference['value']:+.2f} (95%: {low:+.2f} to {high:+.2f})"
