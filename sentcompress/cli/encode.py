"""`sentcompress encode`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.store import WorkDirectory


def command(
    lines: Annotated[
        str, typer.Argument(help="Text, one sentence a line; may be .gz or .zst. - is standard input.", metavar="FILE")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npy file to write.")],
    model: options.Model = None,
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    store: Annotated[str, typer.Option("--store", help="How vectors are kept: float32 or float16.")] = "float32",
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    batch_tokens: Annotated[
        int | None, typer.Option("--batch-tokens", help="Most tokens in a batch. By default what suits the device.")
    ] = None,
    work: options.Work = options.DEFAULT_WORK,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Encode lines of text with any model into one .npy file, a row for each line."""
    from sentcompress.cli import render
    from sentcompress.stages import encode as stage

    params = stage.Params(lines, output, model, revision, trust_remote_code, store, dtype, device, batch_tokens)
    with render.reporting(quiet) as reporter:
        result = stage.run(params, WorkDirectory(work), reporter)
    if as_json:
        render.print_json(asdict(result))
    else:
        render.print_facts(asdict(result))
