"""Score a model on semantic textual similarity, next to another one if wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.artifacts import Artifact, Request, WorkDirectory, file_digest
from sentcompress.corpora.sts import StsSet, read_sts
from sentcompress.corpora.sts_senteval import SPLITS
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import InputError, did_you_mean, raise_faults
from sentcompress.evaluation.metrics import Floats, UndefinedError, cosine_of_pairs
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.sts import AGGREGATES, Graded, StsScore, mean_of_sets, score_pairs, score_set, share_kept
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.progress import SILENT, Reporter

COMMAND = "eval-sts"


@dataclass(frozen=True)
class Params:
    """What to score. `dtype` is float32 because published scores are; `aggregate` as in `AGGREGATES`."""

    sts: Sequence[Path]
    model: str | None = None
    compare: str | None = None
    aggregate: str = "all"
    split: str = "test"
    device: str = "auto"
    dtype: str = "float32"
    revision: str | None = None
    trust_remote_code: bool = False
    name: str | None = None
    force: bool = False

    def check(self) -> None:
        """Raise UsageError that lists every fault."""
        faults = []
        if not self.sts:
            faults.append("name a file or folder of graded pairs with --sts")
        if self.aggregate not in AGGREGATES:
            faults.append(f"--aggregate {self.aggregate}: {did_you_mean(self.aggregate, AGGREGATES)}")
        if self.split not in SPLITS:
            faults.append(f"--split {self.split}: {did_you_mean(self.split, SPLITS)}")
        raise_faults(faults, COMMAND)


def run(params: Params, work: WorkDirectory, reporter: Reporter = SILENT) -> Artifact:
    """Score the model on every set found; the artifact's facts are the result.

    Raises:
        InputError: files that cannot be read, or a set that has no score with this model.
    """
    params.check()
    sets = read_sts(params.sts, params.split)
    _warn_of_dropped(sets, reporter)
    models = {"model": _find(params, work, params.model)}
    if params.compare:
        models["compare"] = _find(params, work, params.compare)
    request = _request(params, sets, models)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        described, scores = {}, {}
        done: dict[NamedModel, tuple[list[list[Floats]], dict[str, Any]]] = {}
        for role, model in models.items():
            # A model may be compared with itself: without a teacher of its own, `teacher` is the embedded one.
            if model not in done:
                done[model] = _similarities(model, sets, params, reporter)
            cosines, described[role] = done[model]
            scores[role] = _Scorer(model.label, params.aggregate, reporter).score(sets, cosines)
        return write_result(build, _result(params, sets, described, scores))


def _find(params: Params, work: WorkDirectory, name: str | None) -> NamedModel:
    # A revision belongs to the model that was named, not to the one it is compared with.
    revision = params.revision if name == params.model else None
    return find_model(work, name, revision=revision, trust_remote_code=params.trust_remote_code)


def _request(params: Params, sets: Sequence[StsSet], models: Mapping[str, NamedModel]) -> Request:
    files = {path.resolve() for found in sets for subset in found.subsets for path in subset.files}
    inputs = {f"file:{path}": file_digest(path) for path in sorted(files)}
    inputs |= {model.reference: model.digest for model in models.values()}
    asked = {
        "aggregate": params.aggregate,
        "split": params.split,
        "dtype": params.dtype,
        "sets": [found.name for found in sets],
        **{role: model.reference for role, model in models.items()},
    }
    suffix = "" if params.split == "test" else f"-{params.split}"
    return Request("evaluations", params.name or f"sts-{models['model'].slug}{suffix}", COMMAND, asked, inputs)


def _warn_of_dropped(sets: Sequence[StsSet], reporter: Reporter) -> None:
    for found in sets:
        ungraded, empty = (sum(getattr(subset, kind) for subset in found.subsets) for kind in ("dropped", "empty"))
        if ungraded:
            reporter.note(f"{found.name}: {ungraded} pairs without a gold score left out, as the protocol demands")
        if empty:
            reporter.warn(f"{found.name}: {empty} pairs with an empty sentence left out")


def _similarities(
    model: NamedModel, sets: Sequence[StsSet], params: Params, reporter: Reporter
) -> tuple[list[list[Floats]], dict[str, Any]]:
    """Cosines of all pairs, by set and subset, and what there is to say about the model."""
    rows: dict[str, int] = {}
    for found in sets:
        for subset in found.subsets:
            for text in (*subset.first, *subset.second):
                rows.setdefault(text, len(rows))
    encoder = model.load()
    engine = EncodeEngine(encoder, device=params.device, dtype=params.dtype)
    with reporter.track(f"encoding with {model.label}", total=len(rows)) as task:
        vectors = engine.encode(list(rows), task)
    zeros = int(np.count_nonzero(~vectors.any(axis=1)))
    if zeros:
        reporter.warn(f"{model.label}: {zeros} sentences have a vector of zeros; their cosines count as 0")
    cosines: list[list[Floats]] = [
        [
            cosine_of_pairs(vectors[[rows[t] for t in subset.first]], vectors[[rows[t] for t in subset.second]])
            for subset in found.subsets
        ]
        for found in sets
    ]
    described = {
        "label": model.label,
        "reference": model.reference,
        "digest": model.digest,
        "dimension": int(vectors.shape[1]),
        "parameters": encoder.count_parameters(),
        "dtype": engine.compute_dtype,
        "sentences": len(rows),
    }
    return cosines, described


@dataclass(frozen=True)
class _Scorer:
    """Scores of one model: for each set its own score and those of its subsets."""

    label: str
    aggregate: str
    reporter: Reporter

    def score(
        self, sets: Sequence[StsSet], cosines: list[list[Floats]]
    ) -> list[tuple[StsScore, list[StsScore | None]]]:
        return [self._score_set(found, similar) for found, similar in zip(sets, cosines, strict=True)]

    def _score_set(self, found: StsSet, cosines: list[Floats]) -> tuple[StsScore, list[StsScore | None]]:
        graded = [
            Graded(np.array(subset.scores), similar) for subset, similar in zip(found.subsets, cosines, strict=True)
        ]
        try:
            whole = score_set(graded, self.aggregate)
        except UndefinedError as error:
            raise InputError(
                f"{found.name} has no score with {self.label}: {error}",
                "a correlation needs two or more pairs whose gold scores and whose similarities differ",
            ) from None
        return whole, [self._score_subset(found, n, pairs) for n, pairs in enumerate(graded) if len(graded) > 1]

    def _score_subset(self, found: StsSet, number: int, pairs: Graded) -> StsScore | None:
        try:
            return score_pairs(pairs)
        except UndefinedError as error:
            self.reporter.warn(f"{found.name} {found.subsets[number].name} alone has no score: {error}")
            return None


def _result(
    params: Params,
    sets: Sequence[StsSet],
    described: Mapping[str, Any],
    scores: Mapping[str, list[tuple[StsScore, list[StsScore | None]]]],
) -> dict[str, Any]:
    rows = []
    for number, found in enumerate(sets):
        row = _row(found.name, len(found), {role: of[number][0] for role, of in scores.items()})
        parts = found.subsets if len(found.subsets) > 1 else ()
        row["subsets"] = [
            _row(subset.name, len(subset), {role: of[number][1][n] for role, of in scores.items()})
            for n, subset in enumerate(parts)
        ]
        rows.append(row)
    mean = {role: mean_of_sets([score.spearman_cosine for score, _ in of]) for role, of in scores.items()}
    return {
        "evaluation": "sts",
        "protocol": _protocol(params),
        **described,
        "sets": rows,
        "mean": {**mean, "share_kept": share_kept(mean["model"], mean["compare"]) if "compare" in mean else None},
        "dropped": {
            found.name: {
                "without_gold_score": sum(subset.dropped for subset in found.subsets),
                "with_empty_sentence": sum(subset.empty for subset in found.subsets),
            }
            for found in sets
        },
    }


def _row(name: str, pairs: int, scores: Mapping[str, StsScore | None]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "pairs": pairs}
    for role, score in scores.items():
        row[role] = score and {"spearman_cosine": score.spearman_cosine, "pearson_cosine": score.pearson_cosine}
    ours, other = scores["model"], scores.get("compare")
    row["share_kept"] = share_kept(ours.spearman_cosine, other.spearman_cosine) if ours and other else None
    return row


def _protocol(params: Params) -> dict[str, Any]:
    return {
        "statement": f"cosine similarity, Spearman x 100 against the gold scores; split {params.split}; aggregate "
        f"{params.aggregate}: {AGGREGATES[params.aggregate]}; pairs without a gold score dropped, STS13 without "
        "SMT; the mean over sets is of scores rounded to two decimals",
        "similarity": "cosine",
        "main_score": "spearman_cosine",
        "scale": 100,
        "aggregate": params.aggregate,
        "split": params.split,
    }
