"""Measure without labels how well a model agrees with another one, its teacher, on the user's sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.commands.eval_fidelity import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.text_files import BadRecords
from sentcompress.corpora.text_sample import TextSample, find_text_files, sample_texts, texts_of_files
from sentcompress.encoding.embedded_texts import EmbeddedTexts, embed_texts, for_each_model
from sentcompress.encoding.embedder import Embedder, PromptedEmbedder
from sentcompress.encoding.embedder_sources import EmbedderSource, find_compared, warn_of_itself
from sentcompress.encoding.token_counts import TokenCounts
from sentcompress.errors import InputError, MissingArtifactError
from sentcompress.evaluation.fidelity_result import Measuring, agreement, cosine_to, shape_of
from sentcompress.evaluation.fidelity_verdict import judge
from sentcompress.evaluation.metrics import CORRELATION
from sentcompress.evaluation.results import write_result
from sentcompress.evaluation.score import COMPARE, MODEL, Recorder
from sentcompress.evaluation.similarity import Floats, normalized
from sentcompress.evaluation.stats import Resampling
from sentcompress.models.catalog import typed_names
from sentcompress.models.names import is_of_work
from sentcompress.models.principal_axes import Projection
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import (
    Artifact,
    Request,
    WorkDirectory,
    ancestors,
    file_inputs,
    held_nothing_out,
    learnt_projection,
    name_part,
    students_of,
)
from sentcompress.training.dev import hold_out


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Compare the two models; the artifact's facts are the result.

    Raises:
        MissingArtifactError: if no sentences or no model were given and the work directory has none.
        InputError: if a file cannot be read, or there are too few sentences.
    """
    params.check()
    models = find_compared(work, params)
    model, compare = models[MODEL], models[COMPARE]
    warn_of_itself(model.label, same=model == compare, reporter=reporter)
    source = _of_files(params, work, model) if params.text else _of_table(params, work, model)
    # Vectors record the files of their teacher; one of the work directory is given as an artifact.
    of_work = is_of_work(compare.reference)
    teacher = compare.model.source.digest if compare.model and of_work else compare.digest
    prompts = {name: of_model for name, found in models.items() if (of_model := source.prompts(found))}
    projection = learnt_projection(work, model.reference, model.digest, teacher)
    inputs = {**source.inputs, **model.inputs, **compare.inputs}
    if projection is not None:
        inputs[projection.reference] = projection.digest
    request = Request.of(
        params,
        params.name or _name(params, model.slug),
        inputs,
        {
            **{role: found.reference for role, found in models.items()},
            **({"prompts": prompts} if prompts else {}),
        },
        **typed_names(params, models),
    )
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        return write_result(build, _evaluate(params, source, models, prompts, projection, reporter))


@dataclass(frozen=True)
class _Source:
    """A source of sentences.

    Attributes:
        name: data set name in the scores.
        kind: description for the protocol.
        seen: whether the student was trained on the sentences.
    """

    name: str
    kind: str
    inputs: dict[str, str]
    files: Sequence[Path] = ()
    table: Artifact | None = None
    rows: npt.NDArray[np.int64] | None = None
    seen: bool = False

    def prompts(self, model: EmbedderSource) -> dict[str, str]:
        """Role -> the model's prompt for sentences of this role, where that is not its default prompt."""
        if self.table is None or model.model is None or not model.model.prompts.differ_by_role:
            return {}
        return model.model.prompts.of_roles(SentenceTable(self.table.path).known_roles(), model.label)

    def roles(self, sample: TextSample) -> dict[str, str]:
        """The role of each sentence of a sample, where the table knows one."""
        if self.table is None:
            return {}
        table, wanted = SentenceTable(self.table.path), set(sample.texts)
        every = (zip(table.texts(file), table.roles(file), strict=True) for file in range(len(table.files)))
        return {text: role for rows in every for text, role in rows if role and text in wanted}

    def sample(self, params: Params, bad: BadRecords) -> TextSample:
        if self.table is None:
            return sample_texts(texts_of_files(self.files, bad), params.sample, params.seed)
        wanted = set(self.rows.tolist()) if self.rows is not None else None
        every = enumerate(SentenceTable(self.table.path).sentences())
        chosen = (text for row, text in every if wanted is None or row in wanted)
        return sample_texts(chosen, params.sample, params.seed)


def _name(params: Params, model: str) -> str:
    """The artifact's name; it includes the text files, so that each set of sentences has its own result."""
    files = "-".join(path.name.split(".", 1)[0] or path.name for path in params.text)
    parts = ("fidelity", name_part(files, 60), model)
    return "-".join(part for part in parts if part)


def _of_files(params: Params, work: WorkDirectory, model: EmbedderSource) -> _Source:
    files = find_text_files(params.text)
    name = ", ".join(path.resolve().name for path in params.text)
    inputs = file_inputs(files)
    trained_on = {digest for one in ancestors(work, model.reference, model.digest) for digest in one.inputs.values()}
    seen = not trained_on.isdisjoint(inputs.values())
    return _Source(name, "the user's sentences", inputs, files, seen=seen)


def _of_table(params: Params, work: WorkDirectory, model: EmbedderSource) -> _Source:
    """The sentences held out from the student's training, if any; otherwise the table's originals."""
    try:
        table = work.get("sentences", params.sentences)
    except MissingArtifactError as error:
        raise error.with_alternative("name files of sentences with `text`", first=True) from None
    parents = SentenceTable(table.path).parents()
    rows, seen = np.flatnonzero(parents < 0), False
    inputs = {table.reference: table.digest}
    trained = students_of(work, model.reference, model.digest, table)
    for student in trained:
        if student.manifest["command"] != "distill" or held_nothing_out(student):
            seen = True
        else:
            rows = np.intersect1d(rows, hold_out(parents, int(student.parameters.get("seed", 0)))[1])
    if trained and not seen:
        return _Source(
            table.reference,
            f"sentences of {table.reference} held out from training",
            inputs,
            table=table,
            rows=rows,
        )
    return _Source(table.reference, f"originals of {table.reference}", inputs, table=table, rows=rows, seen=seen)


def _cosine(projection: Artifact | None, student: Floats, teacher: Floats) -> tuple[dict[str, float] | None, str]:
    """The summary of row-wise cosines and what they are computed against, or None and the reason."""
    if projection is not None:
        projected = Projection.load(projection.path).apply(np.asarray(teacher, dtype=np.float32))
        if projected.shape == student.shape:
            return cosine_to(student, projected), f"the vectors projected by {projection.reference}"
    if student.shape == teacher.shape:
        return cosine_to(student, teacher), "the original vectors"
    widths = f"{student.shape[1]} and {teacher.shape[1]} dimensions"
    return None, f"not comparable: {widths}, and no projection between them"


def _evaluate(
    params: Params,
    source: _Source,
    models: dict[str, EmbedderSource],
    prompts: Mapping[str, Mapping[str, str]],
    projection: Artifact | None,
    reporter: Reporter,
) -> dict[str, Any]:
    bad = BadRecords(skip=params.skip_bad)
    with reporter.track("reading sentences", None):
        sample = source.sample(params, bad)
    bad.warn(reporter)

    def embed(model: EmbedderSource) -> tuple[EmbeddedTexts, TokenCounts | None]:
        embedder = _open(params, source, model, sample, reporter)
        found = embed_texts(model, embedder, sample.texts, reporter, "they are skipped")
        return found, embedder.count_tokens(sample.texts)

    both = for_each_model(models, embed)
    embedded = {role: of for role, (of, _) in both.items()}
    tokens = {role: counts for role, (_, counts) in both.items()}
    usable = np.flatnonzero(np.all([of.vectors.any(axis=1) for of in embedded.values()], axis=0))
    if len(usable) < params.neighbours + 2:
        raise InputError(
            f"{len(usable)} usable sentences: {params.neighbours} neighbours need at least {params.neighbours + 2}",
            "give more sentences, or lower `neighbours`",
        )
    texts = [sample.texts[row] for row in usable]
    raw: dict[str, Floats] = {role: of.vectors[usable] for role, of in embedded.items()}
    unit: dict[str, Floats] = {role: normalized(vectors)[0] for role, vectors in raw.items()}
    measured = tokens[COMPARE] or tokens[MODEL]
    lengths = measured.lengths[usable] if measured else np.array([len(text.split()) for text in texts])
    recorder = Recorder({role: str(of.described["reference"]) for role, of in embedded.items()})
    details = agreement(recorder, source.name, unit, texts, lengths, _measuring(params))
    shapes = {role: shape_of(vectors) for role, vectors in unit.items()}
    used = {role: {"prompts": prompts[role]} if role in prompts else {} for role in models}
    _record_correlation(recorder, source.name, shapes)
    cosine, of_cosine = _cosine(projection, raw[MODEL], raw[COMPARE])
    result: dict[str, Any] = {
        "evaluation": "fidelity",
        "protocol": _protocol(params, source, sample, len(texts)),
        **{
            role: {**of.described, **used[role], "tokens": _tokens(tokens[role]), **shapes[role]}
            for role, of in embedded.items()
        },
        "sentences": len(texts),
        "seen_in_training": source.seen,
        "cosine_to_compared": cosine,
        "cosine_is_to": of_cosine,
        "unit_of_length": "tokens" if measured else "words",
        **details,
        "scores": recorder.as_dicts(),
    }
    return {**result, "verdict": judge(result, recorder.scores).as_dict()}


def _open(params: Params, source: _Source, model: EmbedderSource, sample: TextSample, reporter: Reporter) -> Embedder:
    """The model's embedder, with the prompts of the roles that the sentences have."""
    opening: dict[str, Any] = {"device": params.device, "dtype": params.dtype, "reporter": reporter}
    if not source.prompts(model):
        return model.open(**opening)
    assert model.model is not None
    prompts, roles = model.model.prompts, source.roles(sample)
    return PromptedEmbedder(
        model.open_bare(**opening),
        lambda text: prompts.of_role(roles[text]) if text in roles else prompts.default,
    )


def _record_correlation(recorder: Recorder, data: str, shapes: Mapping[str, Mapping[str, Any]]) -> None:
    """Record the mean |correlation|, in place of IBKD's figure 4: covariances depend on the number of dimensions."""
    found = {role: shape[CORRELATION] for role, shape in shapes.items()}
    values = {role: math.nan if value is None else value for role, value in found.items()}
    of_first = f"first {shapes[MODEL]['dimensions_shown']} dimensions"
    recorder.add(data, CORRELATION, values, part=of_first, count=shapes[MODEL]["sentences_of_covariance"], shared=False)


def _tokens(counts: TokenCounts | None) -> dict[str, Any] | None:
    if counts is None:
        return None
    return {
        "limit": counts.limit,
        "mean_length": float(counts.lengths.mean()),
        "truncated_share": counts.truncated_share,
        "unknown_share": counts.unknown_share,
    }


def _measuring(params: Params) -> Measuring:
    return Measuring(params.neighbours, params.pairwise, params.show, params.bootstrap, params.seed)


def _protocol(params: Params, source: _Source, sample: TextSample, used: int) -> dict[str, Any]:
    drawn = "all" if sample.complete else f"{len(sample.texts):,} sampled with seed {params.seed}"
    return {
        "statement": f"{source.kind}: {drawn} of the distinct sentences, {used:,} used; cosines; share of the "
        f"{params.neighbours} nearest neighbours that both models have; Spearman between the two models' "
        f"similarities of all pairs of {min(params.pairwise, used):,} sentences; anisotropy: mean cosine of all pairs; "
        "effective rank of the covariance after Roy and Vetterli (2007); disagreements: among neighbours, in standard "
        f"deviations of each model's similarities; {Resampling(params.bootstrap).statement('the sentences')}",
        "sentences_read": sample.read,
        "sample": params.sample,
        "complete": sample.complete,
        "seed": params.seed,
        "neighbours": params.neighbours,
        "bootstrap": params.bootstrap,
    }
