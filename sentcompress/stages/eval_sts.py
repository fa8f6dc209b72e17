"""Evaluate a model on semantic textual similarity, optionally compared with another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sentcompress.commands.eval_sts import Params
from sentcompress.corpora.sts import OFFICIAL_PAIRS, STS_B, StsSet, read_sts
from sentcompress.corpora.text_files import BadRecords
from sentcompress.encoding.embedded_texts import EmbeddedTexts, embed_texts, for_each_model
from sentcompress.encoding.embedder_sources import EmbedderSource, find_compared, warn_of_itself
from sentcompress.errors import InputError
from sentcompress.evaluation.alignment import POSITIVE_ABOVE, alignment, uniformity
from sentcompress.evaluation.metrics import ALIGNMENT, SPEARMAN, UNIFORMITY
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.evaluation.similarity import Floats, UndefinedError, cosine_of_pairs, normalized
from sentcompress.evaluation.stats import Estimate, Resampling, record
from sentcompress.evaluation.sts import AGGREGATES, GradedSet, NoScoreError, compare_sets
from sentcompress.exporting.graph_embedder import in_runtime, with_runtime
from sentcompress.models.catalog import typed_names
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted
from sentcompress.store import Artifact, Request, WorkDirectory, file_inputs, name_part


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Evaluate the model on every set found; the artifact's facts are the result.

    Raises:
        InputError: if files cannot be read, or a set has no score with this model.
    """
    params.check()
    sets = read_sts(params.sts, params.split, BadRecords(skip=params.skip_bad))
    _warn_of_sets(sets, reporter)
    models = find_compared(work, params)
    models[MODEL] = in_runtime(work, models[MODEL], params.runtime)
    warn_of_itself(models[MODEL].label, same=models[MODEL] == models.get(COMPARE), reporter=reporter)
    request = _request(params, sets, models)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        seen = for_each_model(models, lambda model: _look(model, sets, params, reporter))
        return write_result(build, _result(params, sets, seen, reporter))


def _request(params: Params, sets: Sequence[StsSet], models: Mapping[str, EmbedderSource]) -> Request:
    subsets = [subset for found in sets for subset in found.subsets]
    inputs = file_inputs(path for subset in subsets for path in subset.files)
    inputs |= dict(subset.hub for subset in subsets if subset.hub)
    for model in models.values():
        inputs |= model.inputs
    resolved = {"sets": [found.name for found in sets], **{role: model.reference for role, model in models.items()}}
    split = _split_of(sets)
    suffix = "" if split == "test" else f"-{name_part(split)}"
    name = params.name or f"sts-{models[MODEL].slug}{suffix}"
    return Request.of(params, name, inputs, resolved, **typed_names(params, models))


def _split_of(sets: Sequence[StsSet]) -> str:
    """The split, or the splits: files that were named themselves can be of others than the one asked for."""
    return " and ".join(sorted({found.split for found in sets}))


def _warn_of_sets(sets: Sequence[StsSet], reporter: Reporter) -> None:
    for found in sets:
        ungraded, empty, bad = (sum(getattr(s, kind) for s in found.subsets) for kind in ("dropped", "empty", "bad"))
        if ungraded:
            reporter.note(
                f"{found.name}: dropped {counted(ungraded, 'pair')} without a gold score, as the protocol requires"
            )
        if empty:
            reporter.warn(f"{found.name}: dropped {counted(empty, 'pair')} with an empty sentence")
        if bad:
            reporter.warn(f"{found.name}: skipped {counted(bad, 'unreadable line')}")
        official = OFFICIAL_PAIRS.get(found.name, len(found))
        if found.split == "test" and len(found) != official:
            reporter.warn(
                f"{found.name} has {len(found):,} pairs, but the published test set has {official:,}: "
                "the score is not comparable with published ones"
            )


def _look(model: EmbedderSource, sets: Sequence[StsSet], params: Params, reporter: Reporter) -> EmbeddedTexts:
    texts = (text for found in sets for subset in found.subsets for text in (*subset.first, *subset.second))
    embedder = model.open(device=params.device, dtype=params.dtype, reporter=reporter)
    return embed_texts(model, embedder, texts, reporter, "their cosines count as 0")


def _cosines(found: StsSet, embedded: EmbeddedTexts) -> list[Floats]:
    return [cosine_of_pairs(embedded.of(subset.first), embedded.of(subset.second)) for subset in found.subsets]


def _result(
    params: Params, sets: Sequence[StsSet], seen: Mapping[str, EmbeddedTexts], reporter: Reporter
) -> dict[str, Any]:
    graded = [
        GradedSet(
            found.name,
            [subset.name for subset in found.subsets],
            [np.array(subset.scores) for subset in found.subsets],
            {role: _cosines(found, embedded) for role, embedded in seen.items()},
        )
        for found in sets
    ]
    resampling = Resampling(params.bootstrap, params.seed)
    recorder = Recorder({role: str(of.described["reference"]) for role, of in seen.items()})

    def unscored(name: str, role: str, why: str) -> None:
        reporter.warn(f"the subset {name} has no score{'' if role == MODEL else f' with {seen[role].label}'}: {why}")

    try:
        compare_sets(recorder, graded, params.aggregate, resampling, unscored)
    except NoScoreError as error:
        raise InputError(
            f"{error.set_name} has no score with {seen[error.role].label}: {error}",
            "a correlation needs at least two pairs with different gold scores and different similarities",
        ) from None
    _record_alignment(recorder, sets, seen, resampling, reporter)
    return {
        "evaluation": "sts",
        "protocol": with_runtime(_protocol(params, _split_of(sets)), params.runtime),
        **{role: of.described for role, of in seen.items()},
        "scores": recorder.as_dicts(),
        "dropped": {
            found.name: {
                "without_gold_score": sum(subset.dropped for subset in found.subsets),
                "with_empty_sentence": sum(subset.empty for subset in found.subsets),
                "unreadable": sum(subset.bad for subset in found.subsets),
            }
            for found in sets
        },
    }


def _record_alignment(
    recorder: Recorder,
    sets: Sequence[StsSet],
    seen: Mapping[str, EmbeddedTexts],
    resampling: Resampling,
    reporter: Reporter,
) -> None:
    """Record alignment and uniformity of each model on STS-B, if it is among the sets."""
    pairs = [subset for found in sets if found.name == STS_B for subset in found.subsets]
    if not pairs:
        return
    gold = np.concatenate([subset.scores for subset in pairs])
    near: dict[str, Estimate] = {}
    spread: dict[str, Estimate] = {}
    for role, embedded in seen.items():
        first = normalized(embedded.of([text for subset in pairs for text in subset.first]))[0]
        second = normalized(embedded.of([text for subset in pairs for text in subset.second]))[0]
        try:
            near[role] = alignment(first, second, gold, resampling)
        except UndefinedError as error:
            reporter.warn(f"{STS_B} has no alignment: {error}")
            return
        spread[role] = uniformity(first, second, resampling)
    record(recorder, STS_B, ALIGNMENT, near, count=int((gold > POSITIVE_ABOVE).sum()), shared=False)
    record(recorder, STS_B, UNIFORMITY, spread, count=len(gold), shared=False)


def _protocol(params: Params, split: str) -> dict[str, Any]:
    drawn = f"the pairs (seed {params.seed}), the same samples for both models"
    intervals = Resampling(params.bootstrap).statement(drawn)
    return {
        "statement": f"cosine similarity, Spearman x 100 against the gold scores; split {split}; aggregate "
        f"{params.aggregate}: {AGGREGATES[params.aggregate]}; pairs without a gold score dropped, STS13 without "
        f"SMT; scores are rounded to two decimals before averaging over sets; {intervals}",
        "similarity": "cosine",
        "main_score": SPEARMAN,
        "scale": 100,
        "aggregate": params.aggregate,
        "split": split,
        "bootstrap": params.bootstrap,
        "seed": params.seed,
    }
