"""`sentcompress average`."""

from __future__ import annotations

from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.errors import UsageError
from sentcompress.store import WorkDirectory


def command(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...", help="Two models or more: students or exports by name, teacher, folders, hub names."
        ),
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            help="How much each counts, with commas, as in 2,1; they need not add up; below zero: away from it.",
            show_default="alike",
        ),
    ] = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Average the weights of models that were trained from one start, such as a student before and after stage 2."""
    from sentcompress.cli import render
    from sentcompress.reporting.scored import measuring
    from sentcompress.stages import average as stage

    params = stage.Params(tuple(inputs), _numbers(weights), trust_remote_code, name, force)
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        parts = [f"{share:.0%} {model}" for share, model in zip(facts["shares"], facts["models"], strict=True)]
        shown = {"average of": ", ".join(parts), "parameters": facts["parameters"], "dimension": facts["dimension"]}
        render.print_facts(shown, artifact.reference)
    render.finished(artifact, measuring("sts", artifact.name, work), as_json=as_json, quiet=quiet)


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text is not None else ()
    except ValueError:
        raise UsageError(f"average: --weights takes numbers with commas between them, not {text!r}") from None
