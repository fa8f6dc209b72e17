"""`sentcompress bench`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.store import WorkDirectory

SIZES = {
    "parameters": "parameters",
    "weight_bytes": "bytes of weights on disk",
    "vector_bytes": "bytes of a vector (float32)",
}
FIGURES = {
    "sentences_per_second": "sentences/s, best batch",
    "sentences_per_second_batch_1": "sentences/s, batch 1",
    "latency_p50_milliseconds": "latency p50, ms",
    "latency_p95_milliseconds": "latency p95, ms",
    "latency_p99_milliseconds": "latency p99, ms",
    "pass_seconds": "seconds of a pass, batch 1",
    "disk_bytes": "bytes on disk",
    "peak_memory_bytes": "peak memory, bytes",
    "model_memory_bytes": "of these for the model",
    "device_memory_bytes": "peak memory of the GPU, bytes",
}


def command(
    model: options.Model = None,
    against: Annotated[
        str,
        typer.Option("--against", help="The model to measure beside it, named as for --model; none for no other."),
    ] = "teacher",
    text: Annotated[
        Path | None, typer.Option("--text", help="Sentences, one a line. By default some of the sentence table.")
    ] = None,
    sentences: options.Sentences = None,
    count: Annotated[int, typer.Option("--count", help="Sentences to encode in batches.")] = 1000,
    single: Annotated[int, typer.Option("--single", help="Sentences to encode one at a time.")] = 100,
    rounds: Annotated[int, typer.Option("--rounds", help="Timed rounds; medians count.")] = 3,
    runtimes: Annotated[
        str | None,
        typer.Option(
            "--runtimes",
            help="float32, bfloat16 (torch), onnx, onnx-int8, with commas between them. By default torch's, and "
            "onnxruntime's where the model was exported.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", help="simtde: seconds of a pass over the pairs of STS-B test, one sentence at a time."
        ),
    ] = None,
    sts: Annotated[
        list[Path] | None, typer.Option("--sts", help="For --preset simtde: STS-B's test file, or a folder with it.")
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Measure peak memory, each in a process of its own.")
    ] = True,
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
    """Measure speed, size and memory of a model and of another one, in turn in the same run."""
    from sentcompress.cli import render
    from sentcompress.stages import bench as stage

    params = stage.Params(
        model=model,
        against=None if against == "none" else against,
        text=text,
        sentences=sentences,
        count=count,
        single=single,
        rounds=rounds,
        runtimes=[one.strip() for one in runtimes.split(",")] if runtimes else (),
        preset=preset,
        sts=sts or (),
        memory=memory,
        seed=seed,
        device=device,
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
    _print(result)
    render.finished(artifact, "sentcompress report", as_json=False, quiet=quiet)


def _print(result: Mapping[str, Any]) -> None:
    from sentcompress.cli import render

    roles = [role for role in ("model", "against") if role in result]
    columns = ["", *(result[role]["label"] for role in roles), *(["ratio"] if len(roles) > 1 else [])]
    render.print_table(columns, _rows(result, roles, SIZES), "size")
    for entry in result["runtimes"]:
        render.print_table(columns, _rows(entry, roles, FIGURES), f"{entry['runtime']}: {entry['what']}")
    render.print_facts({"protocol": result["protocol"]["statement"]})


def _rows(entry: Mapping[str, Any], roles: list[str], titles: Mapping[str, str]) -> list[list[Any]]:
    """A row for each measured thing; the ratio is the first model's figure over the other's."""
    rows: list[list[Any]] = []
    for key, title in titles.items():
        values = [entry.get(role, {}).get(key) for role in roles]
        if any(value is not None for value in values):
            ratio = values[0] / values[1] if len(values) > 1 and values[0] is not None and values[1] else None
            rows.append([title, *values, *([ratio] if len(roles) > 1 else [])])
    return rows
