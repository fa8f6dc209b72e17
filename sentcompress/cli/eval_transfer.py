"""The output of `sentcompress eval-transfer`."""

from __future__ import annotations

from collections.abc import Mapping
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
    render.print_table(columns, rows, "transfer, accuracy x 100", whole=("task",))
    render.print_facts({"protocol": result["protocol"]["statement"]})


def _table(result: Mapping[str, Any]) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows: a line for each task, one more for F1 where there is one, the mean of the tasks last."""
    compared = "compare" in result
    columns = ["task", "tested", "majority", short(result["model"]["label"]), "95%"]
    columns += [short(result["compare"]["label"]), "95%", "difference", "95%", "% kept"] if compared else []
    rows = []
    for task in result["tasks"]:
        tested = task["examples"].get("test") or task["examples"]["all"]
        rows.append([task["name"], tested, task["majority"], *_cells(task, "accuracy", compared)])
        if "f1" in task["model"]:
            cells = _cells({**task, "share_kept": None}, "f1", compared)
            rows.append([f"  {task['name']}, F1", None, None, *cells])
    if len(result["tasks"]) > 1:
        mean = result["mean"]
        line = {
            **{role: {"accuracy": mean[role], "accuracy_interval": of} for role, of in mean["intervals"].items()},
            "difference": mean.get("difference"),
            "share_kept": mean["share_kept"],
        }
        rows.append(["mean of tasks", None, None, *_cells(line, "accuracy", compared)])
    return columns, rows


def _cells(line: Mapping[str, Any], score: str, compared: bool) -> list[Any]:
    interval = f"{score}_interval"
    cells = [line["model"][score], shown(line["model"][interval])]
    if compared:
        other, difference = line["compare"], line["difference"]
        cells += [other[score], shown(other[interval])]
        cells += [f"{difference[score]:+.2f}", shown(difference[interval], signed=True), measured(line["share_kept"])]
    return cells
