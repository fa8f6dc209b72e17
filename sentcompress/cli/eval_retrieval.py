"""`sentcompress eval-retrieval`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sentcompress.cli import options
from sentcompress.cli.evaluations import closing, print_document
from sentcompress.store import Artifact, WorkDirectory

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
    bootstrap: options.Bootstrap = 1000,
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
        bootstrap=bootstrap,
        device=device,
        dtype=dtype,
        revision=revision,
        trust_remote_code=trust_remote_code,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    show(artifact, as_json=as_json, quiet=quiet)


def show(artifact: Artifact, *, as_json: bool = False, quiet: bool = False) -> None:
    """Print the main metric by index, then all metrics, then what every index costs."""
    from sentcompress.cli import render
    from sentcompress.evaluation.measures import INDEX_BYTES, INDEX_LOSS, OVERLAP, SEARCH_TIME
    from sentcompress.evaluation.results import read_evaluation
    from sentcompress.evaluation.score import select
    from sentcompress.evaluation.tables import grid

    if as_json:
        print_document(artifact)
        return
    result, evaluation = artifact.facts, read_evaluation(artifact)
    labels, main = evaluation.labels, evaluation.scores[0]
    judged = f"{result['judged_queries']:,} of {result['queries']:,} queries judged"
    title = f"{main.data}: {result['documents']:,} documents, {judged}; {main.of.title}"
    render.print_scores(select(evaluation.scores, main.metric), labels, "index", title)
    quality = [score for score in evaluation.scores if score.of.scale > 1 and score.metric not in (OVERLAP, INDEX_LOSS)]
    render.print_table(*grid(quality, labels, "index"), "All metrics", whole=["index"])
    costs = [score for score in evaluation.scores if score.of.gain or score.metric in (OVERLAP, INDEX_LOSS)]
    render.print_table(*grid(costs, labels, "index"), "Bytes and times", whole=["index"])
    if len(labels) > 1:
        gains = [score for score in costs if score.metric in (INDEX_BYTES, SEARCH_TIME)]
        render.print_scores(gains, labels, "index", "Gained")
    render.print_facts(_settings(result), "Settings")
    closing(artifact, quiet=quiet)


def _settings(result: Mapping[str, Any]) -> dict[str, str]:
    """The cells and probes of an inverted file and the like, of the model's index."""
    found = {entry["index"]: entry["settings"]["model"] for entry in result["indexes"]}
    return {kind: ", ".join(f"{key} {of[key]}" for key in SETTINGS if key in of) for kind, of in found.items() if of}
