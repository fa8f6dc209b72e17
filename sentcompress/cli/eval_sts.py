"""The output of `sentcompress eval-sts`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sentcompress.cli import render
from sentcompress.cli.intervals import short, shown
from sentcompress.cli.line import Call
from sentcompress.numeric import measured
from sentcompress.store import Artifact


def show(artifact: Artifact, call: Call) -> None:
    """The scores, with intervals where they were asked for."""
    result = artifact.facts
    columns, rows = _table(result)
    render.print_table(columns, rows, "STS, Spearman x 100", whole=("set",))
    if spread := result["alignment_uniformity"]:
        render.print_table(*_spread_table(result, spread), f"{spread['set']}, smaller is better")
    render.print_facts({"protocol": result["protocol"]["statement"]})


def _table(result: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows: a line for each set, its subsets below it, the mean of the sets last."""
    columns = ["set", "pairs", short(result["model"]["label"]), "95%", "Pearson"]
    if "compare" in result:
        columns += [short(result["compare"]["label"]), "95%", "Pearson", "difference", "95%", "% kept"]
    asked = bool(result["protocol"]["bootstrap"])
    rows = [_cells(line, len(columns), asked) for line in _lines(result)]
    if len(result["sets"]) > 1:
        mean, pairs = result["mean"], sum(found["pairs"] for found in result["sets"])
        rows.append(_cells({"name": "mean of sets", "pairs": pairs, **_as_line(mean)}, len(columns), asked))
    return columns, rows


def _as_line(mean: Mapping[str, Any]) -> dict[str, Any]:
    """The mean of the sets in the form of a set's line."""
    scores = {
        role: {"spearman_cosine": mean[role], "spearman_cosine_interval": interval}
        for role, interval in mean["intervals"].items()
    }
    return {**scores, "share_kept": mean["share_kept"], "difference": mean.get("difference")}


def _lines(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for found in result["sets"]:
        yield found
        for subset in found["subsets"]:
            yield {**subset, "name": f"  {subset['name']}"}


def _cells(line: Mapping[str, Any], width: int, asked: bool) -> list[Any]:
    """The cells of a line; `asked` says whether intervals were requested."""
    cells = [line["name"], line["pairs"]]
    for role in ("model", "compare"):
        score = line.get(role) or {}
        cells += [
            measured(score.get("spearman_cosine")),
            shown(score.get("spearman_cosine_interval"), asked=asked),
            # None for the mean of the sets.
            score.get("pearson_cosine"),
        ]
    difference = line.get("difference") or {}
    value = difference.get("spearman_cosine")
    cells += [
        measured(None if value is None else f"{value:+.2f}"),
        shown(difference.get("spearman_cosine_interval"), signed=True, asked=asked),
        measured(line["share_kept"]),
    ]
    return cells[:width]


def _spread_table(result: Mapping[str, Any], spread: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    roles = [(short(result[role]["label"]), spread[role]) for role in ("model", "compare") if role in spread]
    rows = [
        [
            label,
            of["alignment"],
            shown(of["alignment_interval"], digits=3),
            of["uniformity"],
            shown(of["uniformity_interval"], digits=3),
        ]
        for label, of in [*roles, *([("difference", spread["difference"])] if "difference" in spread else [])]
    ]
    return ["model", "alignment", "95%", "uniformity", "95%"], rows
