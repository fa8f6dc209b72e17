"""`sentcompress whiten`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.store import WorkDirectory


def command(
    dim: Annotated[int, typer.Option("--dim", help="Dimensions to keep.")] = 128,
    model: options.StartModel = None,
    sentences: Annotated[
        str | None,
        typer.Option(
            "--sentences",
            help="Name of the sentence table to fit on. By default the one that the model was trained on, "
            "else the one made last.",
        ),
    ] = None,
    sample: Annotated[int, typer.Option("--sample", help="Sentences to fit on, drawn at random.")] = 100_000,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Whiten a model's vectors and cut them to --dim dimensions, inside the model: no training."""
    from sentcompress.cli import render
    from sentcompress.reporting.scored import measuring
    from sentcompress.stages import whiten as stage

    params = stage.Params(model, dim, sample, seed, sentences, device, revision, trust_remote_code, name, force)
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        kept = f"{facts['dimension']} of {facts['model_dimension']} dimensions"
        shown = {"kept": kept, "explained variance": f"{facts['explained_variance']:.2%}", "sample": facts["sample"]}
        render.print_facts(shown, artifact.reference)
    render.finished(artifact, measuring("sts", artifact.name, work), as_json=as_json, quiet=quiet)
