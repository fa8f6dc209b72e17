"""`sentcompress weigh-tokens`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.store import WorkDirectory


def command(
    model: options.StartModel = None,
    smoothing: Annotated[
        float,
        typer.Option(
            "--smoothing", help="a of a / (a + p), p a token's share of all; 0: only punctuation counts less."
        ),
    ] = 0.03,
    punctuation: Annotated[
        float, typer.Option("--punctuation", help="What the weight of punctuation is multiplied with, from 0 to 1.")
    ] = 0.0,
    sentences: options.Sentences = None,
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Let frequent tokens and punctuation count less in a model's vectors: no training, best for teachers."""
    from sentcompress.cli import render
    from sentcompress.reporting.scored import measuring
    from sentcompress.stages import weigh_tokens as stage

    params = stage.Params(model, smoothing, punctuation, sentences, revision, trust_remote_code, name, force)
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        shown = {"mean weight": f"{facts['mean_weight']:.3f}", "lightest": " ".join(facts["lightest"])}
        render.print_facts(shown, artifact.reference)
    render.finished(artifact, measuring("sts", artifact.name, work), as_json=as_json, quiet=quiet)
