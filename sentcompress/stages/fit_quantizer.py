"""Choose and fit how a model's vectors are stored within a number of bytes, by search fidelity on held-out texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sentcompress.commands.fit_quantizer import Params
from sentcompress.commands.shared import CUTOFF
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.corpora.quantizer_texts import FittingTexts, from_documents, from_sentences
from sentcompress.encoding.embedder import Embedder, Vectors
from sentcompress.encoding.embedder_sources import find_compared
from sentcompress.encoding.sides import Sides, in_roles, recorded_prompts
from sentcompress.errors import InputError
from sentcompress.evaluation.search_fidelity import GoldRanking
from sentcompress.evaluation.stats import Resampling, mean_interval
from sentcompress.models.catalog import typed_names
from sentcompress.models.principal_axes import check_dimension
from sentcompress.progress import LOGGED, Reporter
from sentcompress.quantities import counted
from sentcompress.quantization.choice import (
    HeldOut,
    StoragePlan,
    Trial,
    check_fittable,
    plans,
    table_of_prefixes,
    trials,
    turn_of,
)
from sentcompress.quantization.quantizer import FOLDER
from sentcompress.store import Artifact, Request, WorkDirectory


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write the quantizer as an artifact of kind `quantizers`; its facts hold everything that was tried.

    Raises:
        MissingArtifactError: if there are no texts, or no student and no model was given.
        InputError: if no format fits, there are too few texts, or a model's vectors are not usable.
    """
    params.check()
    models = find_compared(work, params)
    model, compare = models["model"], models["compare"]
    texts = _texts(params, work)
    # Sentences have no roles.
    sides = {name: in_roles(of, of) if texts.part else Sides(of, of) for name, of in models.items()}
    request = Request.of(
        params,
        params.name or f"{model.slug}-{params.vector_bytes}",
        {**texts.inputs, **model.inputs, **compare.inputs},
        {**{field: found.reference for field, found in models.items()}, **recorded_prompts(sides)},
        **typed_names(params, models),
    )
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        chosen, facts = _fit(params, sides["model"], sides["compare"], texts, reporter)
        with build.write(FOLDER) as folder:
            chosen.quantizer.save(folder)
        return build.finish(facts)


def _texts(params: Params, work: WorkDirectory) -> FittingTexts:
    limits = (params.sample, params.max_queries, params.max_passages, params.seed)
    # Without either, documents are asked for: they need no other command first.
    only_sentences = not work.names(DOCUMENTS) and work.names("sentences")
    if params.sentences is not None or (params.documents is None and only_sentences):
        return from_sentences(work, params.sentences, *limits)
    return from_documents(work, params.documents, *limits)


def _fit(
    params: Params, model: Sides, compare: Sides, texts: FittingTexts, reporter: Reporter
) -> tuple[Trial, dict[str, Any]]:
    encoded = _FittingVectors(params, model, texts, reporter)
    turn = turn_of(encoded.for_axes)
    gold = encoded.gold(compare)

    def score(queries: Vectors, documents: Vectors) -> Any:
        return 100 * gold.fidelity(queries, documents)

    held_out = HeldOut(encoded.queries, encoded.passages, score)
    tried = list(trials(encoded.plans, turn, encoded.train, held_out, params.seed, reporter))
    chosen = max(tried, key=lambda trial: trial.order)
    if turn.dimension < encoded.train.shape[1] and chosen.quantizer.dimension == turn.dimension:
        reporter.note(
            f"vectors are stored with {turn.dimension} of the model's {encoded.train.shape[1]} dimensions, in "
            f"{counted(chosen.quantizer.bytes, 'byte')} of {params.vector_bytes}: {counted(turn.dimension, 'text')} "
            "to fit on cannot determine more; fit on more documents"
        )
    resampling = Resampling(params.bootstrap, params.seed)
    part = f" of the part {texts.part}" if texts.part else ""
    return chosen, {
        "model": model.queries.described,
        "compare": compare.queries.described,
        **({"prompts": model.prompts} if model.prompts else {}),
        "format": chosen.quantizer.format,
        "dimension": chosen.quantizer.dimension,
        "bytes": chosen.quantizer.bytes,
        "model_dimension": chosen.quantizer.model_dimension,
        "fidelity": float(chosen.scores.mean()),
        "fidelity_of_float32": float(score(encoded.queries, encoded.passages).mean()),
        "protocol": f"nDCG@{CUTOFF} x 100 of {len(encoded.queries):,} held-out queries{part} among "
        f"{len(encoded.passages):,} passages, float32 queries against stored passages; relevant are the first "
        f"{CUTOFF} results of {compare.label}; {resampling.statement(texts.held_out.resampled)}",
        "tried": [_row(trial, texts.held_out.documents, resampling) for trial in tried],
        "prefixes": table_of_prefixes(turn, chosen.quantizer, held_out),
        "texts": len(encoded.train),
        "texts_for_axes": len(encoded.for_axes),
        "queries": len(encoded.queries),
        "passages": len(encoded.passages),
    }


def _row(trial: Trial, documents: Sequence[str], resampling: Resampling) -> dict[str, Any]:
    quantizer = trial.quantizer
    return {
        "format": quantizer.format,
        "dimension": quantizer.dimension,
        "bytes": quantizer.bytes,
        "fidelity": float(trial.scores.mean()),
        "interval": mean_interval(trial.scores, resampling, clusters=documents),
    }


def _plans(params: Params, dimension: int, train: int, for_axes: int) -> list[StoragePlan]:
    """The ways to store vectors that fit, for a model's dimension and the numbers of texts.

    Raises:
        InputError: if there are none, or none that can be fitted.
    """
    if params.dim is not None:
        check_dimension(params.dim, dimension, for_axes, "the model's")
    wanted = plans(params.vector_bytes, min(dimension, for_axes), params.store, params.dim)
    check_fittable(wanted, train)
    return wanted


class _FittingVectors:
    """Vectors of the texts: `train` [N, D], `queries` [Q, D] and `passages` [P, D] of the model.

    `plans` are the ways to store them that fit, which is checked before anything is encoded.

    `for_axes` are those of `train`, and where these are fewer than D, also those of the other texts: N texts have no
    more than N principal axes, and stored vectors would be cut to these.
    """

    def __init__(self, params: Params, model: Sides, texts: FittingTexts, reporter: Reporter) -> None:
        self._params, self._texts, self._reporter = params, texts, reporter
        documents, queries = self._open(model)
        others = texts.others if len(texts.train) < documents.dimension else ()
        self.plans = _plans(params, documents.dimension, len(texts.train), len(texts.train) + len(others))
        held_out = texts.held_out
        self.train, self.queries, self.passages = self._vectors(
            model, (documents, texts.train), (queries, held_out.queries), (documents, held_out.passages)
        )
        self.for_axes = self.train
        if others:
            self.for_axes = np.concatenate([self.train, *self._vectors(model, (queries, others))])

    def gold(self, compare: Sides) -> GoldRanking:
        """The results that are to be reproduced."""
        documents, queries = self._open(compare)
        held_out = self._texts.held_out
        asked, searched = self._vectors(compare, (queries, held_out.queries), (documents, held_out.passages))
        return GoldRanking.of(asked, searched)

    def _open(self, sides: Sides) -> tuple[Embedder, Embedder]:
        """The embedders of documents and queries."""
        opening: dict[str, Any] = {"device": self._params.device, "dtype": self._params.dtype}
        if self._texts.part:
            return sides.open(**opening, reporter=self._reporter)
        embedder = sides.queries.open(**opening, reporter=self._reporter)
        return embedder, embedder

    def _vectors(self, sides: Sides, *parts: tuple[Embedder, tuple[str, ...]]) -> list[Vectors]:
        found = []
        with self._reporter.track(f"encoding with {sides.label}", total=sum(len(texts) for _, texts in parts)) as task:
            for embedder, texts in parts:
                found.append(embedder.encode(texts, task))
                if not np.isfinite(found[-1]).all():
                    raise InputError(
                        f"{sides.label} returned vectors with NaN or infinity",
                        "copy or download it again, or choose another model",
                    )
        return found
