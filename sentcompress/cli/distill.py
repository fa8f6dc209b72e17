"""`sentcompress distill`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentcompress.artifacts import WorkDirectory
from sentcompress.cli import options

RECIPE = "By default as in the method's recipe: sentcompress methods show METHOD."
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
            help="teacher:K (the teacher's last K layers), tinybert, tinybert6, minilm, bert-base, a folder, "
            "or a hub name.",
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
    epochs: Annotated[int | None, typer.Option("--epochs", help=f"Passes over the sentences. {RECIPE}")] = None,
    lr: Annotated[float | None, typer.Option("--lr", help="Highest learning rate.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Sentences a step.")] = None,
    batch_tokens: Annotated[
        int | None, typer.Option("--batch-tokens", help="Most tokens a step; by default 64 times the batch size.")
    ] = None,
    warmup_steps: Annotated[
        int | None, typer.Option("--warmup-steps", help="Steps of rising learning rate, at most a tenth of all.")
    ] = None,
    warmup_ratio: Annotated[
        float | None, typer.Option("--warmup-ratio", help="The same as a share of all steps, without that limit.")
    ] = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="cosine, linear or constant.")] = None,
    weight_decay: Annotated[float | None, typer.Option("--weight-decay", help="AdamW's, on matrices only.")] = None,
    clip: Annotated[float | None, typer.Option("--clip", help="Largest norm of the gradients; 0 is no limit.")] = None,
    max_length: Annotated[
        int | None, typer.Option("--max-length", help="Tokens that are read of a sentence while training.")
    ] = None,
    dropout: Annotated[
        float | None, typer.Option("--dropout", help="In place of the student's own; 0 is faster too.")
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(
            "--dev",
            help="Graded pairs, score<TAB>sentence1<TAB>sentence2, that choose the best checkpoint (never a test set). "
            "By default held-out sentences do, by their cosine to the target.",
        ),
    ] = None,
    eval_every: Annotated[int | None, typer.Option("--eval-every", help="Steps between two dev scores.")] = None,
    patience: Annotated[
        float | None, typer.Option("--patience", help="Stop after so many epochs without a better dev score.")
    ] = None,
    grad_accum: Annotated[
        int,
        typer.Option(
            "--grad-accum", help="Batches that make one step; contrastive methods see all their rows as negatives."
        ),
    ] = 1,
    max_steps: Annotated[int | None, typer.Option("--max-steps", help="Stop after so many steps.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A switch of the method; may be given several times."),
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    checkpoint_every: Annotated[
        float, typer.Option("--checkpoint-every", help="Seconds between checkpoints; no influence on the result.")
    ] = 60.0,
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
    from sentcompress.cli import render
    from sentcompress.stages import distill as stage
    from sentcompress.training.settings import Overrides

    numbers = Overrides(
        lr=lr,
        epochs=epochs,
        batch_size=batch_size,
        schedule=schedule,
        warmup_steps=warmup_steps,
        weight_decay=weight_decay,
        clip=clip,
        max_length=max_length,
        dropout=dropout,
        eval_every=eval_every,
        patience=patience,
        warmup_ratio=warmup_ratio,
        batch_tokens=batch_tokens,
        grad_accum=grad_accum,
        max_steps=max_steps,
        seed=seed,
        device=device,
        dtype=dtype,
        checkpoint_seconds=checkpoint_every,
    )
    params = stage.Params(
        method=method,
        student=student,
        dim=dim,
        token_dim=token_dim,
        numbers=numbers,
        options=tuple(settings or ()),
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
    next_command = f"sentcompress eval-sts --sts FOLDER --model {artifact.name} --compare teacher --work {work}"
    render.finished(artifact, next_command, as_json=as_json, quiet=quiet)
