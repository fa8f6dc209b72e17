"""The output of `sentcompress bench`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.line import Call
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact

SIZES = {
    "parameters": "parameters",
    "weight_bytes": "bytes of weights on disk",
    "vector_bytes": "bytes of a vector (float32)",
}
FIGURES = {
    "sentences_per_second": "sentences/s, best batch",
    "sentences_per_second_batch_1": "sentences/s, batch 1",
    "latency_p50_milliseconds": "latency p50, ms",
    "latency_p95_milliseconds": "latency p95, ms",
    "latency_p99_milliseconds": "latency p99, ms",
    "pass_seconds": "seconds of a pass, batch 1",
    "disk_bytes": "bytes on disk",
    "peak_memory_bytes": "peak memory, bytes",
    "model_memory_bytes": "of these for the model",
    "device_memory_bytes": "peak memory of the GPU, bytes",
}


def show(artifact: Artifact, call: Call) -> str:
    """Sizes, speeds and memory, one table per runtime."""
    _print(artifact.facts)
    return f"sentcompress report --work {shell_word(call.work)}"


def _print(result: Mapping[str, Any]) -> None:
    roles = [role for role in ("model", "against") if role in result]
    columns = ["", *(result[role]["label"] for role in roles), *(["ratio"] if len(roles) > 1 else [])]
    render.print_table(columns, _rows(result, roles, SIZES), "size")
    for entry in result["runtimes"]:
        render.print_table(columns, _rows(entry, roles, FIGURES), f"{entry['runtime']}: {entry['what']}")
    render.print_facts({"protocol": result["protocol"]["statement"]})


def _rows(entry: Mapping[str, Any], roles: list[str], titles: Mapping[str, str]) -> list[list[Any]]:
    """A row for each measured thing; the ratio is the first model's figure over the other's."""
    rows: list[list[Any]] = []
    for key, title in titles.items():
        values = [entry.get(role, {}).get(key) for role in roles]
        if any(value is not None for value in values):
            ratio = values[0] / values[1] if len(values) > 1 and values[0] is not None and values[1] else None
            rows.append([title, *values, *([ratio] if len(roles) > 1 else [])])
    return rows
