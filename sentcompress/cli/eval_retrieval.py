"""`sentcompress eval-retrieval`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.store import WorkDirectory

METRICS = {"mrr_at_10": "MRR@10", "ndcg_at_10": "nDCG@10"} | {f"recall_at_{k}": f"R@{k}" for k in (1, 10, 100, 1000)}

# In the order in which a table shows them beside the kind.
SETTINGS = ("nlist", "nprobe", "links", "ef_construction", "ef_search", "segments", "bits", "candidates", "rescore")


def command(
    pairs: Annotated[
        Path | None, typer.Option("--pairs", help="Question pairs, csv or tsv: question1, question2, is_duplicate.")
    ] = None,
    collection: Annotated[
        Path | None, typer.Option("--collection", help="A folder with corpus, queries and judgements: BEIR, MS MARCO.")
    ] = None,
    entities: Annotated[
        Path | None,
        typer.Option("--entities", help="Entity pairs, a file or a folder of splits: query, entity, label."),
    ] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Part of the data set. By default test, else dev, else the only one.")
    ] = None,
    model: options.Model = None,
    documents: Annotated[
        str | None, typer.Option("--documents", help="Another model for the documents only, such as teacher.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option("--queries", help="Another model for the queries only, such as student.")
    ] = None,
    compare: options.Compare = None,
    index: Annotated[
        str,
        typer.Option("--index", help="Kinds of index, with commas: flat, ivf, ivfpq, pq, hnsw, sq8, fp16, binary."),
    ] = "flat,ivf",
    depth: Annotated[
        int | None, typer.Option("--depth", help="Documents that a search returns: 1,000 for --collection, else 10.")
    ] = None,
    nlist: Annotated[int, typer.Option("--nlist", help="Cells of an inverted file.")] = 1024,
    nprobe: Annotated[int, typer.Option("--nprobe", help="Cells that a search looks into.")] = 5,
    segments: Annotated[
        int | None,
        typer.Option("--segments", help="Codes of a vector in ivfpq and pq. By default one for 4 dimensions."),
    ] = None,
    links: Annotated[int, typer.Option("--links", help="Neighbours of a node of hnsw (M).")] = 32,
    ef_construction: Annotated[
        int, typer.Option("--ef-construction", help="Candidates that hnsw keeps while it is built.")
    ] = 100,
    ef_search: Annotated[int, typer.Option("--ef-search", help="Candidates that hnsw keeps while it searches.")] = 64,
    candidates: Annotated[
        int, typer.Option("--candidates", help="Documents that binary and pq rescore; at least --depth.")
    ] = 100,
    rescore: Annotated[
        str, typer.Option("--rescore", help="What binary and pq rescore with: int8, float16 or float32.")
    ] = "int8",
    threads: Annotated[int, typer.Option("--threads", help="FAISS's threads, 0 for all.")] = 1,
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
    """Score a model on retrieval, with the time and the bytes that its index takes and what the index loses."""
    from sentcompress.cli import render
    from sentcompress.evaluation.index_plan import IndexSettings
    from sentcompress.stages import eval_retrieval as stage

    settings = IndexSettings(
        nlist=nlist,
        nprobe=nprobe,
        segments=segments,
        links=links,
        ef_construction=ef_construction,
        ef_search=ef_search,
        candidates=candidates,
        rescore=rescore,
        seed=seed,
    )
    params = stage.Params(
        pairs=pairs,
        collection=collection,
        entities=entities,
        split=split,
        model=model,
        documents=documents,
        queries=queries,
        compare=compare,
        index=[kind.strip() for kind in index.split(",") if kind.strip()],
        settings=settings,
        depth=depth,
        threads=threads,
        rounds=rounds,
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
    _show(result)
    render.finished(artifact, None, as_json=False, quiet=quiet)


def _show(result: Mapping[str, Any]) -> None:
    from sentcompress.cli import render

    judged = f"{result['judged_queries']:,} of {result['queries']:,} queries judged"
    metrics = {key: shown for key, shown in METRICS.items() if key in result["exact"]["model"]}
    main = METRICS[result["protocol"]["main_score"]]
    render.print_table(
        ["index", "model", *metrics.values(), f"{main}, 95%", "% kept", "index loses"],
        [
            row
            for entry in ({"index": "exact", **result["exact"]}, *result["indexes"])
            for row in _scores(entry, result)
        ],
        f"{result['dataset']['name']}: {result['documents']:,} documents, {judged}; all x 100",
        whole=["index", *metrics.values(), f"{main}, 95%"],
    )
    render.print_table(
        ["index", "model", "dim", "index bytes", "vector bytes", "build s", "ms/1,000 queries", "p50 ms", "p95 ms"],
        [row for entry in result["indexes"] for row in _costs(entry, result)],
        "Bytes and times",
        whole=["index", "index bytes", "vector bytes", "ms/1,000 queries"],
    )
    for entry in result["indexes"] if "compare" in result else ():
        ratios = f"{entry['times_smaller']:.2f} times smaller, {entry['times_faster'] or 0:.2f} times faster"
        render.print_facts({entry["index"]: f"{result['model']['label']} is {ratios}; {main} {_difference(entry)}"})
    render.print_facts({"protocol": result["protocol"]["statement"]})


def _name(entry: Mapping[str, Any], role: str) -> str:
    """An index with its settings, such as the cells and probes of an inverted file."""
    settings = entry[role].get("settings", {})
    return f"{entry['index']} {'/'.join(str(settings[key]) for key in SETTINGS if key in settings)}".strip()


def _scores(entry: Mapping[str, Any], result: Mapping[str, Any]) -> list[list[Any]]:
    main = result["protocol"]["main_score"]
    return [
        [
            _name(entry, role),
            result[role]["label"],
            *(entry[role][key] for key in METRICS if key in entry[role]),
            "{:.2f} to {:.2f}".format(*entry[role]["interval"]),
            entry["shares_kept"][main] if role == "model" and "shares_kept" in entry else None,
            f"{entry[role]['index_loss'][main]:.2f}" if "index_loss" in entry[role] else None,
        ]
        for role in ("model", "compare")
        if role in result
    ]


def _costs(entry: Mapping[str, Any], result: Mapping[str, Any]) -> list[list[Any]]:
    keys = ("build_seconds", "milliseconds_per_1000_queries", "milliseconds_p50", "milliseconds_p95")
    return [
        [
            _name(entry, role),
            result[role]["label"],
            result[role]["dimension"],
            entry[role]["index_bytes"],
            result[role]["raw_vector_bytes"],
            *(entry[role][key] for key in keys),
        ]
        for role in ("model", "compare")
        if role in result
    ]


def _difference(entry: Mapping[str, Any]) -> str:
    difference = entry["difference"]
    low, high = difference["interval"]
    return f"{difference['value']:+.2f} (95%: {low:+.2f} to {high:+.2f})"
