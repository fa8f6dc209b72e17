"""`sentcompress bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.cli.evaluations import closing, print_document
from sentcompress.store import Artifact, WorkDirectory


def command(
    model: options.Model = None,
    compare: Annotated[
        str,
        typer.Option("--compare", help="The model to measure beside it, named as for --model; none for no other."),
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
        compare=None if compare == "none" else compare,
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
    show(artifact, as_json=as_json, quiet=quiet)


def show(artifact: Artifact, *, as_json: bool = False, quiet: bool = False) -> None:
    """Print sizes, then the figures of every runtime."""
    from sentcompress.cli import render
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.score import select, size_scores, sizes_of

    if as_json:
        print_document(artifact)
        return
    result, evaluation = artifact.facts, read_evaluation(artifact)
    references = {role: str(model["reference"]) for role, model in evaluation.models.items()}
    sizes = size_scores(references, {role: sizes_of(model) for role, model in evaluation.models.items()})
    render.print_scores(sizes, evaluation.labels, "size", "size")
    for entry in result["runtimes"]:
        scores = select(evaluation.scores, part=entry["runtime"])
        render.print_scores(scores, evaluation.labels, entry["runtime"], f"{entry['runtime']}: {entry['what']}")
    closing(artifact, quiet=quiet, then="sentcompress report")
