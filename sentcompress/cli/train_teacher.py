"""`sentcompress train-teacher`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli import training_options as training
from sentcompress.plain_text import shell_word
from sentcompress.store import WorkDirectory

SHOWN = (
    *("started_from", "objective", "pooling", "triplets", "parameters", "dimension", "dev_before_training", "dev"),
    *("dev_protocol", "best_step", "steps", "stopped", "diagnosis", "compute_dtype", "sentences_per_second"),
)


def command(
    model: Annotated[
        str, typer.Option("--model", help="What to start from: a folder, a hub name such as roberta-large, embedded.")
    ],
    triplets: Annotated[
        list[str],
        typer.Option(
            "--triplets",
            help="Labelled pairs or triplets, in any format that augment reads; may be given several times.",
        ),
    ],
    pooling: Annotated[
        str,
        typer.Option(
            "--pooling",
            help="For a checkpoint without modules: cls-mlp (as SimCSE: CLS, a new Linear and Tanh), cls, mean.",
        ),
    ] = "cls-mlp",
    objective: Annotated[
        str, typer.Option("--objective", help="simcse or ibkd: see `sentcompress methods`.")
    ] = "simcse",
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
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out lines that cannot be read, and count them.")
    ] = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a teacher on triplets (supervised SimCSE), for `teacher-embed --teacher NAME`."""
    numbers = training.overrides(locals())
    from sentcompress.cli import render
    from sentcompress.stages import train_teacher as stage

    params = stage.Params(
        model=model,
        triplets=tuple(triplets),
        pooling=pooling,
        objective=objective,
        numbers=numbers,
        options=tuple(switches or ()),
        dev=dev,
        revision=revision,
        trust_remote_code=trust_remote_code,
        skip_bad=skip_bad,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        render.print_facts({key: facts[key] for key in SHOWN}, artifact.reference)
    next_command = f"sentcompress teacher-embed --teacher {shell_word(artifact.name)} --work {shell_word(work)}"
    render.finished(artifact, next_command, as_json=as_json, quiet=quiet)
