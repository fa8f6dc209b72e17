"""Measure how well a model reproduces the search results of another one, its teacher, without labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sentcompress.commands.eval_search import ALL, Params
from sentcompress.commands.shared import CUTOFF
from sentcompress.corpora.search_texts import (
    SearchSource,
    SearchTexts,
    collection_source,
    documents_source,
    query_kinds,
)
from sentcompress.encoding.embedder import Embedder, Vectors
from sentcompress.encoding.embedder_sources import EmbedderSource, find_compared, warn_of_itself
from sentcompress.encoding.sides import Sides, recorded_prompts, sides_of
from sentcompress.errors import InputError, MissingArtifactError
from sentcompress.evaluation.metrics import FIRST_FOUND, RESULTS_SHARED, SEARCH_FIDELITY
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.evaluation.search_fidelity import GoldRanking, Values
from sentcompress.evaluation.search_verdict import judge
from sentcompress.evaluation.searchable import unsearchable, warn_of_zeros
from sentcompress.evaluation.similarity import UndefinedError, normalized
from sentcompress.evaluation.stats import Resampling, mean_interval
from sentcompress.exporting.graph_embedder import in_runtime, with_runtime
from sentcompress.models.catalog import typed_names
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted
from sentcompress.quantization.lookup import FoundQuantizer, find_quantizer
from sentcompress.quantization.quantizer import Quantizer
from sentcompress.store import Artifact, Request, WorkDirectory, name_part


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Search with both models; the artifact's facts are the result.

    Raises:
        MissingArtifactError: if no documents or no model were given and the work directory has none.
        InputError: if the texts cannot be read, there are too few, the model has no such graph or no quantizer, or the
            vectors of an asymmetric search do not match.
    """
    params.check()
    if params.collection is not None:
        source = collection_source(params.collection, params.split)
    else:
        try:
            source = documents_source(work, params.documents, params.own_part)
        except MissingArtifactError as error:
            raise error.with_alternative("name a folder of documents and queries with `collection`") from None
    models = find_compared(work, params)
    own, compare = models[MODEL], models[COMPARE]
    teacher = sides_of(work, compare, compare)
    model = sides_of(work, compare if params.keep_index else own, own)
    quantizer = _quantizer(work, model.queries) if params.stored else None
    model = replace(model, queries=in_runtime(work, model.queries, params.runtime))
    if not params.keep_index:
        model = replace(model, documents=in_runtime(work, model.documents, params.runtime))
    itself = model == teacher and quantizer is None
    warn_of_itself(model.label, same=itself, reporter=reporter)
    part = {} if params.collection is not None else {"query_part": params.own_part or ALL}
    request = Request.of(
        params,
        params.name or f"search-{name_part(source.name, 60)}-{model.slug}{'-stored' * params.stored}",
        {**source.inputs, **compare.inputs, **model.inputs, **(quantizer.inputs if quantizer else {})},
        {
            MODEL: model.queries.reference,
            COMPARE: compare.reference,
            "data": source.name,
            **part,
            **recorded_prompts({MODEL: model, COMPARE: teacher}),
        },
        **typed_names(params, models),
    )
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        stored = quantizer.quantizer if quantizer else None
        return write_result(build, _evaluate(params, source, model, teacher, stored, reporter))


def _quantizer(work: WorkDirectory, model: EmbedderSource) -> FoundQuantizer:
    """How the model's vectors are stored: by the quantizer that `encode` takes, of any format."""
    if model.model is None:
        raise InputError(f"{model.label} is a file of vectors, which has no quantizer", "name a model")
    return find_quantizer(work, model.model)


def _evaluate(
    params: Params,
    source: SearchSource,
    model: Sides,
    compare: Sides,
    stored: Quantizer | None,
    reporter: Reporter,
) -> dict[str, Any]:
    with reporter.track("reading documents", None):
        texts = source.read(queries=params.max_queries, passages=params.max_passages, seed=params.seed)
    searched, of_compare = _encoded(params, texts, compare, reporter)
    gold = GoldRanking.of(*searched)
    vectors, of_model = _encoded(params, texts, model, reporter)
    ranks = gold.ranks(*(vectors if stored is None else _as_stored(stored, *vectors)))
    described = {MODEL: of_model, COMPARE: of_compare}
    recorder = Recorder({role: str(of["reference"]) for role, of in described.items()})
    resampling = Resampling(params.bootstrap, params.seed)
    gains = gold.gains(ranks)
    for metric, values in (
        (SEARCH_FIDELITY, gains),
        (RESULTS_SHARED, (ranks < gold.k).mean(axis=1)),
        (FIRST_FOUND, (ranks == 0).any(axis=1).astype(float)),
    ):
        _record(recorder, texts.name, metric, "", values, texts.documents, resampling)
    for kind, rows in query_kinds(texts.kinds).items():
        made_from = [texts.documents[row] for row in rows]
        _record(recorder, texts.name, SEARCH_FIDELITY, kind, gains[rows], made_from, resampling)
    result = {
        "evaluation": "search",
        "protocol": with_runtime(_protocol(params, texts, stored, resampling), params.runtime),
        **described,
        "queries": len(texts.queries),
        "passages": len(texts.passages),
        "queries_among_passages": len({*texts.queries} & {*texts.passages}),
        "clusters": texts.clusters,
        "keep_index": params.keep_index,
        "scores": recorder.as_dicts(),
    }
    return {**result, "verdict": judge(result, recorder.scores).as_dict()}


def _as_stored(quantizer: Quantizer, queries: Vectors, passages: Vectors) -> tuple[Vectors, Vectors]:
    """Float32 queries and decoded passages, in the space of the stored vectors."""
    return quantizer.turn(queries), quantizer.decode(quantizer.encode(passages))


def _record(
    recorder: Recorder,
    data: str,
    metric: str,
    part: str,
    values: Values,
    documents: Sequence[str],
    resampling: Resampling,
) -> None:
    """Record a mean x 100; the compared model reproduces its own results, hence its score of 100."""
    intervals = {MODEL: mean_interval(values, resampling, 100, documents)}
    recorder.add(
        data,
        metric,
        {MODEL: 100 * float(values.mean()), COMPARE: 100.0},
        part=part,
        count=len(values),
        intervals=intervals,
    )


def _encoded(
    params: Params, texts: SearchTexts, sides: Sides, reporter: Reporter
) -> tuple[tuple[Vectors, Vectors], dict[str, Any]]:
    """Vectors of queries and passages, and what is recorded about their model; the cache has many of them."""
    documents, queries = sides.open(device=params.device, dtype=params.dtype, reporter=reporter)
    vectors = (
        _vectors(sides.queries, queries, texts.queries, "queries", reporter),
        _vectors(sides.documents, documents, texts.passages, "passages", reporter),
    )
    prompts = {"prompts": sides.prompts} if sides.prompts else {}
    return vectors, {**queries.described(), **sides.queries.described, "label": sides.label, **prompts}


def _vectors(
    source: EmbedderSource, embedder: Embedder, texts: tuple[str, ...], what: str, reporter: Reporter
) -> Vectors:
    with reporter.track(f"encoding {what} with {source.label}", total=len(texts), unit=what) as task:
        vectors = embedder.encode(texts, task)
    try:
        zeros = normalized(vectors)[1]
    except UndefinedError as error:
        raise unsearchable(source.label, error) from None
    warn_of_zeros(reporter, source.label, zeros, what)
    return vectors


def _protocol(params: Params, texts: SearchTexts, stored: Quantizer | None, resampling: Resampling) -> dict[str, Any]:
    drawn = "all" if texts.complete else f"sampled with seed {params.seed}"
    kinds = query_kinds(texts.kinds)
    made = f" ({', '.join(f'{len(rows):,} {kind}' for kind, rows in kinds.items())})" if kinds else ""
    ways = "; queries by the model, passages by the compared one" if params.keep_index else ""
    part = f" of the part {params.own_part}" if params.collection is None and params.own_part else ""
    facts: dict[str, Any] = {"part": params.own_part or ALL} if params.collection is None else {}
    if stored is not None:
        facts["stored"] = {"format": stored.format, "dimension": stored.dimension, "bytes": stored.bytes}
        ways += f"; passages stored as {stored.format} in {counted(stored.bytes, 'byte')} each, queries in float32"
    return {
        "statement": f"{len(texts.queries):,} queries{part}{made} among {len(texts.passages):,} passages, {drawn}; "
        f"exact search by cosine; nDCG@{CUTOFF} with the compared model's first {CUTOFF} results as relevant "
        f"documents, grades {CUTOFF} to 1 by rank, equal cosines ranked in the worst order{ways}; "
        f"{resampling.statement(texts.resampled)}",
        "cutoff": CUTOFF,
        **facts,
        "seed": params.seed,
        "bootstrap": params.bootstrap,
        "resampled": texts.resampled,
    }
