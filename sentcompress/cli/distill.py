"""`sentcompress distill`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli import training_options as training
from sentcompress.store import WorkDirectory

SHOWN = (
    *("teacher", "student", "parameters", "dimension", "dev", "dev_protocol", "best_step", "steps", "stopped"),
    *("compute_dtype", "sentences_per_second"),
)


def command(
    method: Annotated[str, typer.Option("--method", help="What to learn from: see `sentcompress methods`.")] = "hpd",
    student: Annotated[
        str,
        typer.Option(
            "--student",
            help="teacher:K (the teacher's last K layers), tinybert, tinybert-huawei, tinybert6, minilm, bert-base, a "
            "student's name, a folder, or a hub name.",
        ),
    ] = "teacher:3",
    dim: Annotated[
        int | None, typer.Option("--dim", help="Take the projection pca-DIM. By default the one fitted last.")
    ] = None,
    token_dim: Annotated[
        int | None,
        typer.Option(
            "--token-dim",
            help="For teacher:K: factorise the token table to this width (an ELECTRA checkpoint, as SimTDE's).",
        ),
    ] = None,
    vocabulary: Annotated[
        int | None,
        typer.Option(
            "--vocabulary", help="For teacher:K: keep so many tokens, those that the sentences use most (WordPiece)."
        ),
    ] = None,
    character_count: Annotated[
        int,
        typer.Option(
            "--character-count",
            help="With --vocabulary: single characters stay if the sentences have them so often; 0 keeps them all.",
        ),
    ] = 0,
    feed_forward: Annotated[
        int | None,
        typer.Option("--feed-forward", help="For teacher:K: keep so many neurons of every feed-forward network."),
    ] = None,
    passes: Annotated[
        int,
        typer.Option(
            "--passes",
            help="For --token-dim: go through the layers so many times, one after another (an ALBERT checkpoint): "
            "deeper and slower, no larger.",
        ),
    ] = 1,
    start: Annotated[
        str,
        typer.Option(
            "--start",
            help="For --token-dim and --feed-forward: start from the teacher's weights alone, or from what it does "
            "with sentences (weights, sentences).",
        ),
    ] = "weights",
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
    sentences: options.Sentences = None,
    teacher_vectors: options.TeacherVectors = None,
    projection: Annotated[
        str | None, typer.Option("--projection", help="Name of the projection. By default the one fitted last.")
    ] = None,
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a student on the teacher's cached vectors; interrupted, the same command goes on where it stopped."""
    numbers = training.overrides(locals())
    from sentcompress.cli import render
    from sentcompress.reporting.scored import measuring
    from sentcompress.stages import distill as stage

    params = stage.Params(
        method=method,
        student=student,
        dim=dim,
        token_dim=token_dim,
        vocabulary=vocabulary,
        character_count=character_count,
        feed_forward=feed_forward,
        passes=passes,
        start=start,
        numbers=numbers,
        options=tuple(switches or ()),
        dev=dev,
        sentences=sentences,
        teacher_vectors=teacher_vectors,
        projection=projection,
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
