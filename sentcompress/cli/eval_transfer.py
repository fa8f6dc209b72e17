"""`sentcompress eval-transfer`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.cli.intervals import short, shown
from sentcompress.numeric import measured
from sentcompress.store import WorkDirectory


def command(
    tasks: Annotated[
        Path,
        typer.Option(
            "--tasks", help="A folder with sub-folders such as MR, TREC or MRPC, or SentEval's downstream folder."
        ),
    ],
    only: Annotated[
        str | None, typer.Option("--only", help="Tasks to score, with commas between them. By default all there are.")
    ] = None,
    model: options.Model = None,
    compare: options.Compare = None,
    folds: Annotated[int, typer.Option("--folds", help="Folds of every cross-validation.")] = 10,
    bootstrap: options.Bootstrap = 1000,
    seed: options.Seed = 1111,
    skip_bad: options.SkipBad = False,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score a model's vectors as features of classification tasks: accuracy of logistic regression on them."""
    from sentcompress.cli import render
    from sentcompress.stages import eval_transfer as stage

    params = stage.Params(
        tasks=tasks,
        only=[task.strip() for task in (only or "").split(",") if task.strip()],
        model=model,
        compare=compare,
        folds=folds,
        bootstrap=bootstrap,
        seed=seed,
        skip_bad=skip_bad,
        device=device,
        dtype=dtype,
        revision=revision,
        trust_remote_code=trust_remote_code,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    result = artifact.facts
    if as_json:
        render.print_json({**result, "artifact": artifact.reference, "path": str(artifact.path)})
        return
    columns, rows = _table(result)
    render.print_table(columns, rows, "transfer, accuracy x 100", whole=("task",))
    render.print_facts({"protocol": result["protocol"]["statement"]})
    render.finished(artifact, None, as_json=False, quiet=quiet)


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
