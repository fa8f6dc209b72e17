"""`sentcompress finetune`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli import training_options as training
from sentcompress.store import WorkDirectory

SHOWN = (
    *("started_from", "objective", "triplets", "parameters", "dimension", "dev_before_training", "dev"),
    *("dev_protocol", "best_step", "steps", "stopped", "diagnosis", "compute_dtype", "sentences_per_second"),
)


def command(
    objective: Annotated[
        str, typer.Option("--objective", help="simcse or ibkd: see `sentcompress methods`.")
    ] = "simcse",
    model: options.StartModel = None,
    dim: Annotated[
        int | None, typer.Option("--dim", help="Learn a linear head to so many dimensions, which stays.")
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(
            "--keep",
            help="Weight of a distillation term on ordinary sentences with teacher vectors, beside the triplets.",
        ),
    ] = None,
    epochs: training.Epochs = None,
    lr: training.LearningRate = None,
    batch_size: training.BatchSize = None,
    batch_tokens: training.BatchTokens = None,
    grad_accum: training.GradAccum = 1,
    warmup_steps: training.WarmupSteps = None,
    warmup_ratio: training.WarmupRatio = None,
    schedule: training.Schedule = None,
    weight_decay: training.WeightDecay = None,
    clip: training.Clip = None,
    max_length: training.MaxLength = None,
    dropout: training.Dropout = None,
    dev: training.Dev = None,
    eval_every: training.EvalEvery = None,
    patience: training.Patience = None,
    max_steps: training.MaxSteps = None,
    ema: training.Ema = None,
    switches: training.Switches = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    checkpoint_seconds: training.CheckpointEvery = 60.0,
    sentences: Annotated[
        str | None,
        typer.Option("--sentences", help="Name of the sentence table. By default the newest one with triplets."),
    ] = None,
    teacher_vectors: options.TeacherVectors = None,
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Stage 2: train a student on triplets with hard negatives (those of augment, or of mine-negatives)."""
    numbers = training.overrides(locals())
    from sentcompress.cli import render
    from sentcompress.reporting.scored import measuring
    from sentcompress.stages import finetune as stage

    params = stage.Params(
        objective=objective,
        model=model,
        dim=dim,
        keep=keep,
        numbers=numbers,
        options=tuple(switches or ()),
        dev=dev,
        sentences=sentences,
        teacher_vectors=teacher_vectors,
        revision=revision,
        trust_remote_code=trust_remote_code,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        render.print_facts({key: facts[key] for key in SHOWN}, artifact.reference)
    render.finished(artifact, measuring("sts", artifact.name, work), as_json=as_json, quiet=quiet)
