"""`sentcompress fit-pca`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.plain_text import shell_word
from sentcompress.store import WorkDirectory


def command(
    dim: Annotated[int, typer.Option("--dim", help="Dimensions to keep.")] = 128,
    sample: Annotated[int, typer.Option("--sample", help="Vectors to fit on, drawn at random.")] = 100_000,
    whiten: Annotated[bool, typer.Option("--whiten", help="Also scale every dimension to variance one.")] = False,
    seed: options.Seed = 0,
    teacher_vectors: options.TeacherVectors = None,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a PCA on the teacher's vectors: the short vectors that a student learns to give."""
    from sentcompress.cli import render
    from sentcompress.stages import fit_pca as stage

    params = stage.Params(dim, sample, seed, whiten, teacher_vectors, name, force)
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        render.print_chart(facts["explained_variance_ratio"], "explained variance by dimension")
        kept = f"{facts['dimension']} of {facts['teacher_dimension']} dimensions"
        render.print_facts({"kept": kept, "explained variance": f"{facts['explained_variance']:.2%}"})
    next_command = (
        f"sentcompress distill --method hpd --projection {shell_word(artifact.name)} --work {shell_word(work)}"
    )
    render.finished(artifact, next_command, as_json=as_json, quiet=quiet)
