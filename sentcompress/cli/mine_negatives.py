"""`sentcompress mine-negatives`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sentcompress.cli import options
from sentcompress.plain_text import shell_word
from sentcompress.store import WorkDirectory

SHOWN = ("mined_from", "model", "queries", "corpus", "triplets", "negatives", "mean_positive_score")


def command(
    pairs: Annotated[
        Path | None,
        typer.Option(
            "--pairs",
            help="Queries and positives, csv, tsv, jsonl or parquet. Without it and --collection: the triplets of the "
            "work directory.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option("--column", help="Twice: the columns of the query and of the positive in --pairs."),
    ] = None,
    collection: Annotated[
        Path | None, typer.Option("--collection", help="A folder with corpus, queries and judgements: BEIR, MS MARCO.")
    ] = None,
    split: Annotated[str | None, typer.Option("--split", help="Part of the collection. By default train.")] = None,
    sentences: Annotated[
        str | None,
        typer.Option("--sentences", help="Name of the sentence table. By default the newest one with triplets."),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option("--corpus", help="More texts to search: a file of any format that augment reads.")
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="Who searches: teacher, student (the one finished last), or any model.")
    ] = "teacher",
    negatives: Annotated[int, typer.Option("--negatives", help="Hard negatives of each pair.")] = 8,
    skip: Annotated[
        int, typer.Option("--skip", help="Pass over so many of the best candidates: they may be answers.")
    ] = 0,
    depth: Annotated[int, typer.Option("--depth", help="Candidates that are looked at, after those.")] = 100,
    max_score: Annotated[
        float,
        typer.Option(
            "--max-score",
            help="Drop candidates that score above this share of the positive's score; 0 for no limit.",
        ),
    ] = 0.95,
    strategy: Annotated[
        str, typer.Option("--strategy", help="random draws from the candidates that remain, top takes the best.")
    ] = "random",
    similarity: Annotated[
        str, typer.Option("--similarity", help="cosine, or dot for models that are trained with inner products.")
    ] = "cosine",
    index: Annotated[
        str, typer.Option("--index", help="flat (exact), or for large corpora ivf, hnsw or another kind.")
    ] = "flat",
    nlist: Annotated[int, typer.Option("--nlist", help="Cells of an inverted file.")] = 1024,
    nprobe: Annotated[int, typer.Option("--nprobe", help="Cells that a search looks into.")] = 5,
    skip_bad: options.SkipBad = False,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    name: Annotated[str, typer.Option("--name", help="Name of the result in the work directory.")] = "mined",
    work: options.Work = options.DEFAULT_WORK,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find hard negatives: texts that a model takes for near to a query, and that do not answer it."""
    from sentcompress.cli import render
    from sentcompress.stages import mine_negatives as stage

    params = stage.Params(
        pairs=pairs,
        collection=collection,
        sentences=sentences,
        corpus=corpus,
        columns=tuple(column or ()),
        split=split,
        model=model,
        rules=stage.Rules(negatives, skip, depth, max_score or None, strategy),
        similarity=similarity,
        index=index,
        settings=stage.IndexSettings(nlist=nlist, nprobe=nprobe, seed=seed),
        seed=seed,
        skip_bad=skip_bad,
        device=device,
        dtype=dtype,
        revision=revision,
        trust_remote_code=trust_remote_code,
        name=name,
        force=force,
    )
    with render.reporting(quiet) as reporter:
        artifact = stage.run(params, WorkDirectory(work), reporter)
    facts = artifact.facts
    if not as_json:
        shown = {key: facts[key] for key in (*SHOWN, "mean_negative_score")}
        shown["positives among candidates"] = f"{facts['positives_among_candidates']:.1%}"
        shown["candidates dropped"] = f"{facts['share_dropped']:.1%}"
        render.print_facts(shown, artifact.reference)
    next_command = f"sentcompress finetune --sentences {shell_word(artifact.name)} --work {shell_word(work)}"
    render.finished(artifact, next_command, as_json=as_json, quiet=quiet)
