"""`sentcompress eval-retrieval`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.artifacts import WorkDirectory
from sentcompress.cli import options


def command(
    pairs: Annotated[
        Path, typer.Option("--pairs", help="Question pairs, csv or tsv: question1, question2, is_duplicate.")
    ],
    model: options.Model = None,
    compare: options.Compare = None,
    index: Annotated[str, typer.Option("--index", help="Kinds of index, with commas: flat, ivf.")] = "flat,ivf",
    nlist: Annotated[int, typer.Option("--nlist", help="Cells of the inverted file.")] = 1024,
    nprobe: Annotated[int, typer.Option("--nprobe", help="Cells that a search looks into.")] = 5,
    threads: Annotated[int, typer.Option("--threads", help="Threads of the timed searches; 0 for all.")] = 1,
    rounds: Annotated[int, typer.Option("--rounds", help="Timed searches; their median counts.")] = 5,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: options.Name = None,
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Score a model on finding duplicate questions, with the time and the bytes that its index takes."""
    from sentcompress.cli import render
    from sentcompress.stages import eval_retrieval as stage

    kinds = [kind.strip() for kind in index.split(",") if kind.strip()]
    params = stage.Params(
        pairs=pairs,
        model=model,
        compare=compare,
        index=kinds,
        nlist=nlist,
        nprobe=nprobe,
        threads=threads,
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
    result = artifact.facts
    if as_json:
        render.print_json({**result, "artifact": artifact.reference, "path": str(artifact.path)})
        return
    title = f"{result['documents']:,} documents, {result['judged_queries']:,} of {result['queries']:,} queries judged"
    render.print_table(
        ["index", "model", "dim", "MRR@10 x 100", "% kept", "ms/1,000 queries", "index bytes", "vector bytes"],
        [row for entry in result["indexes"] for row in _rows(entry, result)],
        title,
    )
    for entry in result["indexes"] if "compare" in result else ():
        ratios = f"{entry['times_smaller']:.2f} times smaller, {entry['times_faster'] or 0:.2f} times faster"
        render.print_facts({f"{entry['index']}": f"{result['model']['label']} is {ratios}"})
    render.print_facts({"protocol": result["protocol"]["statement"]})
    render.finished(artifact, None, as_json=False, quiet=quiet)


def _rows(entry: Mapping[str, Any], result: Mapping[str, Any]) -> list[list[Any]]:
    """A line for each model; the cells and probes of an inverted file stand beside its name."""
    settings = "/".join(str(value) for value in entry["settings"].values())
    return [
        [
            f"{entry['index']} {settings}".strip(),
            result[role]["label"],
            result[role]["dimension"],
            entry[role]["mrr_at_10"],
            entry.get("share_kept") if role == "model" else None,
            entry[role]["milliseconds_per_1000_queries"],
            entry[role]["index_bytes"],
            result[role]["raw_vector_bytes"],
        ]
        for role in ("model", "compare")
        if role in result
    ]
