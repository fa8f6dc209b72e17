"""`sentcompress eval-transfer`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli.evaluations import show
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
    show(artifact, as_json=as_json, quiet=quiet)
