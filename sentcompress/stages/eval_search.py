"""Measure how well a model reproduces the search results of another one, its teacher, without labels."""

from __future__ import annotations

from functools import partial
from typing import Any

from sentcompress.commands.eval_search import Params
from sentcompress.corpora.search_texts import (
    SearchSource,
    SearchTexts,
    collection_source,
    documents_source,
    query_kinds,
)
from sentcompress.encoding.embedders import Embedder, EmbedderSource, Vectors, find_embedder
from sentcompress.encoding.sides import Sides, find_sides
from sentcompress.errors import InputError
from sentcompress.evaluation.measures import FIRST_FOUND, RESULTS_SHARED, SEARCH_FIDELITY
from sentcompress.evaluation.metrics import UndefinedError, normalized
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.evaluation.search_fidelity import CUTOFF, GRADING, GoldRanking, Values
from sentcompress.evaluation.search_verdict import judge
from sentcompress.evaluation.stats import Resampling, mean_interval
from sentcompress.models.catalog import typed_name
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, Request, WorkDirectory, name_part

COMMAND = Params.command


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Search with both models; the artifact's facts are the result.

    Raises:
        MissingArtifactError: if no documents or no model were given and the work directory has none.
        InputError: if the texts cannot be read, there are too few, or the vectors of an asymmetric search do not match.
    """
    params.check()
    if params.collection is not None:
        source = collection_source(params.collection, params.split)
    else:
        source = documents_source(work, params.documents)
    find = partial(find_sides, work, trust_remote_code=params.trust_remote_code)
    revision = params.revision if params.model != params.compare else None
    compare = find_embedder(work, params.compare, trust_remote_code=params.trust_remote_code)
    model = find(params.compare if params.keep_index else params.model, params.model, revision=revision)
    request = Request.of(
        params,
        params.name or f"search-{name_part(source.name, 60)}-{model.slug}",
        {**source.inputs, **compare.inputs, **model.inputs},
        {MODEL: model.queries.reference, COMPARE: compare.reference, "data": source.name},
        model=typed_name(params.model, model.queries),
        compare=typed_name(params.compare, compare),
    )
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        return write_result(build, _evaluate(params, source, model, compare, reporter))


def _evaluate(
    params: Params, source: SearchSource, model: Sides, compare: EmbedderSource, reporter: Reporter
) -> dict[str, Any]:
    with reporter.track("reading documents", None):
        texts = source.read(queries=params.queries, passages=params.passages, seed=params.seed)
    opening = {"device": params.device, "dtype": params.dtype, "reporter": reporter}
    teacher = compare.open(**opening)  # type: ignore[arg-type]
    gold = GoldRanking.of(*_encoded(texts, (compare, teacher), (compare, teacher), reporter))
    documents, queries = model.open(**opening)  # type: ignore[arg-type]
    ranks = gold.ranks(*_encoded(texts, (model.queries, queries), (model.documents, documents), reporter))
    described = {
        MODEL: {**queries.described(), **model.queries.described, "label": model.label},
        COMPARE: {**teacher.described(), **compare.described},
    }
    recorder = Recorder({role: str(of["reference"]) for role, of in described.items()})
    resampling = Resampling(params.bootstrap, params.seed)
    gains = gold.gains(ranks)
    for metric, values in (
        (SEARCH_FIDELITY, gains),
        (RESULTS_SHARED, (ranks < gold.k).mean(axis=1)),
        (FIRST_FOUND, (ranks == 0).any(axis=1).astype(float)),
    ):
        _record(recorder, texts.name, metric, "", values, resampling)
    for kind, rows in query_kinds(texts.kinds).items():
        _record(recorder, texts.name, SEARCH_FIDELITY, kind, gains[rows], resampling)
    result = {
        "evaluation": "search",
        "protocol": _protocol(params, texts, resampling),
        **described,
        "queries": len(texts.queries),
        "passages": len(texts.passages),
        "keep_index": params.keep_index,
        "scores": recorder.as_dicts(),
    }
    return {**result, "verdict": judge(result, recorder.scores).as_dict()}


def _record(recorder: Recorder, data: str, metric: str, part: str, values: Values, resampling: Resampling) -> None:
    """Record a mean x 100; the compared model reproduces its own results, hence its score of 100."""
    intervals = {MODEL: mean_interval(values, resampling, 100)}
    recorder.add(
        data,
        metric,
        {MODEL: 100 * float(values.mean()), COMPARE: 100.0},
        part=part,
        count=len(values),
        intervals=intervals,
    )


def _encoded(
    texts: SearchTexts,
    queries: tuple[EmbedderSource, Embedder],
    passages: tuple[EmbedderSource, Embedder],
    reporter: Reporter,
) -> tuple[Vectors, Vectors]:
    """Vectors of queries and passages; those of models come from the cache where it has them."""
    (source, embedder), (other, of_passages) = queries, passages
    return (
        _vectors(source, embedder, texts.queries, "queries", reporter),
        _vectors(other, of_passages, texts.passages, "passages", reporter),
    )


def _vectors(
    source: EmbedderSource, embedder: Embedder, texts: tuple[str, ...], what: str, reporter: Reporter
) -> Vectors:
    with reporter.track(f"encoding {what} with {source.label}", total=len(texts), unit=what) as task:
        vectors = embedder.encode(texts, task)
    try:
        zeros = normalized(vectors)[1]
    except UndefinedError as error:
        raise InputError(f"{source.label} cannot be searched: {error}", "is it damaged?") from None
    if zeros:
        reporter.warn(f"{source.label}: {zeros} {what} have a zero vector, which matches nothing")
    return vectors


def _protocol(params: Params, texts: SearchTexts, resampling: Resampling) -> dict[str, Any]:
    drawn = "all" if texts.complete else f"sampled with seed {params.seed}"
    kinds = query_kinds(texts.kinds)
    made = f" ({', '.join(f'{len(rows):,} {kind}' for kind, rows in kinds.items())})" if kinds else ""
    asymmetric = "; queries by the model, passages by the compared one" if params.keep_index else ""
    return {
        "statement": f"{len(texts.queries):,} queries{made} among {len(texts.passages):,} passages, {drawn}; exact "
        f"search by cosine; nDCG@{CUTOFF} with the compared model's first {CUTOFF} results as relevant documents, "
        f"grades {CUTOFF} to 1 by rank, equal cosines ranked in the worst order{asymmetric}; {resampling.statement}",
        "cutoff": CUTOFF,
        "grading": GRADING,
        "seed": params.seed,
        "bootstrap": params.bootstrap,
    }
