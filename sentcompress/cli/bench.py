"""`sentcompress bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.artifacts import WorkDirectory
from sentcompress.cli import options

ROWS = {
    "sentences_per_second": "sentences/s, best batch",
    "sentences_per_second_batch_1": "sentences/s, batch 1",
    "latency_p50_milliseconds": "latency p50, ms",
    "latency_p95_milliseconds": "latency p95, ms",
    "latency_p99_milliseconds": "latency p99, ms",
    "parameters": "parameters",
    "weight_bytes": "bytes of weights on disk",
    "vector_bytes": "bytes of a vector (float32)",
}


def command(
    model: options.Model = None,
    against: Annotated[
        str, typer.Option("--against", help="The model to measure beside it, named as for --model.")
    ] = "teacher",
    text: Annotated[
        Path | None, typer.Option("--text", help="Sentences, one a line. By default some of the sentence table.")
    ] = None,
    sentences: options.Sentences = None,
    count: Annotated[int, typer.Option("--count", help="Sentences to encode in batches.")] = 1000,
    single: Annotated[int, typer.Option("--single", help="Sentences to encode one at a time.")] = 100,
    rounds: Annotated[int, typer.Option("--rounds", help="Timed rounds; medians count.")] = 3,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure speed and size of a model and of another one, in turn in the same run."""
    from sentcompress.cli import render
    from sentcompress.stages import bench as stage

    params = stage.Params(
        model=model,
        against=against,
        text=text,
        sentences=sentences,
        count=count,
        single=single,
        rounds=rounds,
        seed=seed,
        device=device,
        dtype=dtype,
        revision=revision,
        trust_remote_code=trust_remote_code,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    result: dict[str, Any] = artifact.facts
    if as_json:
        render.print_json({**result, "artifact": artifact.reference, "path": str(artifact.path)})
        return
    ours, other = result["model"], result["against"]
    rows = [[title, ours[key], other[key], ours[key] / other[key]] for key, title in ROWS.items()]
    render.print_table(["", ours["label"], other["label"], "ratio"], rows, "speed and size")
    render.print_facts({"dtype": f"{ours['dtype']}, {other['dtype']}", "protocol": result["protocol"]["statement"]})
    render.finished(artifact, None, as_json=False, quiet=quiet)
