"""Keep the best of several models by their scores in an evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sentcompress.commands.select import Params
from sentcompress.errors import DamagedError, InputError, did_you_mean
from sentcompress.evaluation.metrics import (
    ACCURACY,
    CORRELATION,
    F1,
    FIRST_FOUND,
    FIRST_RELEVANT,
    METRICS,
    MRR,
    NDCG,
    NEAREST,
    NEIGHBOURS,
    PEARSON,
    RECALLS,
    RESULTS_SHARED,
    SEARCH_FIDELITY,
    SIMILARITIES,
    SPEARMAN,
    recall_at,
)
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import COMPARE, MODEL, Score
from sentcompress.models.catalog import NamedModel, find_model, save_made, typed_name
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import METHOD_OF, Artifact, Request, WorkDirectory, measurements

COMMAND = Params.command
# The command that measures a metric, for hints.
MEASURED_BY = {
    **dict.fromkeys((SEARCH_FIDELITY, RESULTS_SHARED, FIRST_FOUND), "eval-search"),
    **dict.fromkeys((SPEARMAN, PEARSON), "eval-sts"),
    **dict.fromkeys((MRR, NDCG, FIRST_RELEVANT, *map(recall_at, RECALLS)), "eval-retrieval"),
    **dict.fromkeys((ACCURACY, F1), "eval-transfer"),
    **dict.fromkeys((NEIGHBOURS, NEAREST, SIMILARITIES, CORRELATION), "eval-fidelity"),
}


class Key(NamedTuple):
    """What scores of the same metric must have in common to be compared.

    Attributes:
        statement: the protocol.
        files: digests of the data.
        data, part: the data set, and the part of it.
        compared: digest of the compared model if the metric is relative to it, otherwise empty.
        documents: digest of the model of the documents, and how their vectors were stored; empty if the ranked model
            encoded them and nothing was stored.
    """

    statement: str
    files: frozenset[str]
    data: str
    part: str
    compared: str
    documents: tuple[str, str]


Found = Mapping[Key, tuple[Score, Evaluation]]


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write a copy of the model at `rank` as an artifact of kind `students`.

    Of equal models, the one named first ranks higher.

    Raises:
        InputError: if a model cannot be found or was not evaluated, its score is not defined, or the evaluations cannot
            be compared.
    """
    params.check()
    models = [find_model(work, name, trust_remote_code=params.trust_remote_code) for name in params.inputs]
    scores, used = _comparable(params, work, models)
    better = 1 if METRICS[params.metric].higher_is_better else -1
    order = sorted(range(len(models)), key=lambda place: -better * scores[place].value)
    chosen = models[order[params.rank - 1]]
    inputs = {one.reference: one.digest for one in models}
    inputs |= {evaluation.artifact.reference: evaluation.artifact.digest for evaluation in used}
    name = params.name or f"{chosen.slug}-selected"
    typed = tuple(map(typed_name, params.inputs, models))
    request = Request.of(replace(params, inputs=typed), name, inputs)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        facts = save_made(chosen.load(), chosen, work, build, trust_remote_code=params.trust_remote_code)
        ranking = [{"model": models[place].label, "value": scores[place].value} for place in order]
        return build.finish(
            {
                "method": COMMAND,
                METHOD_OF: chosen.reference,
                "models": [chosen.label],
                "by": params.metric,
                "data": scores[0].data,
                "compared_with": used[0].labels[COMPARE] if METRICS[params.metric].relative else None,
                "ranking": ranking,
                **facts,
            }
        )


def _comparable(
    params: Params, work: WorkDirectory, models: Sequence[NamedModel]
) -> tuple[list[Score], list[Evaluation]]:
    """A score of each model with the same metric, data and protocol, and the evaluations that they are from."""
    found: list[Found] = [dict(_scores(params, work, model)) for model in models]
    label = METRICS[params.metric].label
    where = f" on {params.data}" if params.data else ""
    if missing := [model.label for model, of in zip(models, found, strict=True) if not of]:
        hint = _to_measure(params, work, models if not any(found) else ())
        raise InputError(f"{label}{where} was not measured for {', '.join(missing)}", hint)
    shared = set.intersection(*map(set, found))
    if not shared:
        raise _incomparable(f"{label}{where} of these models cannot be compared", found)
    if len({key.data for key in shared}) > 1:
        names = ", ".join(sorted({key.data for key in shared}))
        raise InputError(f"{label} was measured on several data sets: {names}", "name one of them with `data`")
    # Measured by several protocols or against several models: the comparison that was completed last.
    last = max(shared, key=lambda key: max(of[key][1].artifact.age for of in found))
    pairs = [of[last] for of in found]
    # NaN has no place in a ranking.
    undefined = [model.label for model, (score, _) in zip(models, pairs, strict=True) if not math.isfinite(score.value)]
    if undefined:
        raise InputError(
            f"{label}{where} is not defined for {', '.join(undefined)}",
            ("leave these models out", "choose another metric with `by`"),
        )
    return [score for score, _ in pairs], [evaluation for _, evaluation in pairs]


def _to_measure(params: Params, work: WorkDirectory, models: Sequence[NamedModel]) -> str:
    """The hint for a metric that was not measured; `models` are those that may have it on other data."""
    every = replace(params, data=None)
    elsewhere = {key.data for model in models for key, _ in _scores(every, work, model)}
    if params.data and elsewhere:
        return did_you_mean(params.data, elsewhere)
    command = MEASURED_BY.get(params.metric)
    return "evaluate each model first" + (f", with {command}" if command else "")


def _incomparable(what: str, found: Sequence[Found]) -> InputError:
    """The error for scores without a common key."""
    alike = set.intersection(*({key._replace(compared="") for key in of} for of in found))
    if not alike:
        return InputError(
            f"{what}: it was measured on other data or by another protocol", "evaluate them with the same options"
        )
    pairs = [(key, one) for of in found for key, (_, one) in of.items() if key._replace(compared="") in alike]
    labels = sorted({evaluation.labels[COMPARE] for _, evaluation in pairs})
    others = f"models ({', '.join(labels)})" if len(labels) > 1 else f"versions of {labels[0]}"
    return InputError(f"{what}: it was measured against different {others}", "evaluate them with the same `compare`")


def _scores(params: Params, work: WorkDirectory, model: NamedModel) -> Iterator[tuple[Key, tuple[Score, Evaluation]]]:
    """The measured scores of a model, the newest last: the metric on a whole data set, or on its first part."""
    for artifact in sorted(measurements(work, model.reference, model.digest), key=lambda artifact: artifact.age):
        try:
            evaluation = read_evaluation(artifact)
        except DamagedError:
            continue
        seen: set[str] = set()
        for score in evaluation.scores:
            if score.role != MODEL or score.metric != params.metric or score.data in seen:
                continue
            if score.of.relative and COMPARE not in evaluation.models:
                continue
            seen.add(score.data)
            if params.data in (None, score.data):
                compared = str(evaluation.facts[COMPARE].get("digest")) if score.of.relative else ""
                documents = _documents(evaluation.models[MODEL])
                key = Key(evaluation.statement, evaluation.data, score.data, score.part, compared, documents)
                yield key, (score, evaluation)


def _documents(model: Mapping[str, Any]) -> tuple[str, str]:
    by = model.get("documents_by", {})
    other = str(by.get("digest", ""))
    return "" if other == model.get("digest") else other, str(by.get("store", ""))
