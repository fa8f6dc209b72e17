"""The decisions of `compress` before training: the candidates, and how the time is divided."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from sentcompress.commands.compress import Params
from sentcompress.compression.budget import LEAST_TRAINING, Budget, TooShortError, share_out
from sentcompress.compression.embedding_load import SAME_FOR_ALL, EmbeddingLoad
from sentcompress.compression.graph_size import TransformerSize, counted_bytes
from sentcompress.compression.plan_file import PlanFile
from sentcompress.compression.plan_words import told, told_documents
from sentcompress.compression.recipe import GENERAL, CompressionPlan, Documents
from sentcompress.compression.request import absolute
from sentcompress.compression.shapes import Candidate, fitting, own_shape, smallest, told_shapes
from sentcompress.compression.workload import judged_seconds, measured_workload
from sentcompress.corpora.collection_folders import collection_data_set
from sentcompress.errors import InputError, SentcompressError, UsageError
from sentcompress.exporting.onnx import convert, require_tokenizer
from sentcompress.exporting.verification import require_padding_ignored
from sentcompress.models.catalog import NamedModel, find_model
from sentcompress.models.cautions import SAMPLE, told_guess, told_similarity
from sentcompress.models.encoder import Encoder
from sentcompress.models.factorised import is_factorisable
from sentcompress.models.families import FAMILIES, WITH_LAYERS
from sentcompress.models.model_files import is_static, read_config, transformer_folder, whole_number
from sentcompress.models.sources import EMBEDDED_LABEL
from sentcompress.models.vocabulary import is_word_piece
from sentcompress.progress import Reporter
from sentcompress.quantities import read_bytes, read_seconds, told_bytes, told_time
from sentcompress.store import Artifact, WorkDirectory

# Number of candidates: few if the first is good from the start, because it was trained on many texts or is the teacher.
# In less than FOR_NEW_SHAPES seconds, new shapes are then not tried: one of them won only one of twelve runs of 30
# minutes.
BESIDE_GOOD, CANDIDATES = 2, 4
FOR_NEW_SHAPES = 3600.0
OTHER_TEACHERS = "compress needs a transformer as the teacher; other models can be distilled step by step"


def make_plan(
    params: Params,
    name: str,
    work: WorkDirectory,
    reporter: Reporter,
    split: Callable[[Mapping[str, Any]], Artifact],
) -> CompressionPlan:
    """The plan of a request, for the documents and the teacher as they are now.

    Args:
        name: the name of the plan.
        split: runs the stage `split-documents`, given as a table of the recipe.

    Raises:
        UsageError: if no model fits the budget, or the time is too short; it names a sufficient budget.
        InputError: if the documents or the teacher cannot be used.
    """
    started = time.monotonic()
    if params.judged:
        collection_data_set(params.judged, None)  # before the documents are read
    with reporter.phase(f"loading the teacher {params.teacher}"):
        found = find_model(work, params.teacher)
        if is_static(found.source.path):
            raise InputError(f"{found.label} is a static model: it has token vectors, and no layers", OTHER_TEACHERS)
        config = read_config(transformer_folder(found.source.path))
        encoder = found.load()
    for caution in (told_guess(found.source, found.label, found.pooling), told_similarity(encoder, found.label)):
        if caution:
            reporter.warn(caution)
    teacher = _teacher_size(found.label, config, encoder)
    most = read_bytes(params.max_bytes)
    candidates = candidates_within(params, found, teacher, most)
    # Students are cut only from these architectures, whose graphs are known.
    known = not candidates[0].untrained or config.get("model_type") in FAMILIES
    _check_convertible(encoder, reporter, known=known)
    documents = _documents(params)
    artifact = split(documents.split_stage(name, params.seed))
    load = measured_workload(artifact, encoder, reporter, started)
    if not candidates[0].untrained:
        load = load.with_more(GENERAL) if documents.general else load
        most_work = max(one.multiplications for one in candidates) / teacher.multiplications()
        load = replace(load, student_cost=most_work + SAME_FOR_ALL)
    budget = _budget(params, load, candidates)
    if params.judged:
        budget = replace(budget, judged=judged_seconds(params.judged, load, encoder.text.max_length))
    return CompressionPlan(
        name=name,
        teacher=params.teacher,
        documents=documents,
        max_bytes=most,
        vector_bytes=params.vector_bytes or teacher.vector,
        budget=budget,
        candidates=candidates,
        keep_index=params.keep_index,
        seed=params.seed,
        read=told_documents(artifact.facts),
        made_for=(artifact.digest, found.digest),
    )


def plan_file_of(plan: CompressionPlan, request: Mapping[str, Any], *, since: str, replaced: Sequence[str]) -> PlanFile:
    """The plan in the form in which it is stored in its file.

    Args:
        since: results that are older than this time are to be replaced; empty if none is.
        replaced: references of results of the plan that it replaces.
    """
    documents, teacher = plan.made_for
    made = PlanFile(
        request=request,
        seconds=plan.budget.seconds + plan.budget.judged,
        since=since,
        told=told(plan),
        stages=list(plan.stages()),
        documents=documents,
        teacher=teacher,
        afterwards=plan.budget.afterwards + plan.budget.judged,
        spent=plan.budget.spent,
    )
    again, last = set(made.references()), made.last_training()
    return replace(
        made,
        replaced=[one for one in dict.fromkeys(replaced) if one not in again],
        training=last.trains if last else None,
    )


def _teacher_size(label: str, config: dict[str, Any], encoder: Encoder) -> TransformerSize:
    known = config.get("model_type") in FAMILIES
    size = TransformerSize.of(
        config,
        encoder.dimension,
        can_cut=config.get("model_type") in WITH_LAYERS,
        can_factorise=is_factorisable(config),
        can_trim=is_word_piece(encoder.tokenizer),
    )
    if size is None and not known and encoder.depth:
        # T5, GPT-2 and others have names of their own for some sizes, or leave out the number of neurons.
        neurons = whole_number(config, "intermediate_size", "d_ff", "d_inner", "n_inner") or 4 * encoder.hidden_size
        tokens, positions = encoder.table_size, encoder.max_positions or 0
        size = TransformerSize(encoder.depth, encoder.hidden_size, neurons, tokens, positions, encoder.dimension)
        size = replace(size, can_cut=False, can_factorise=False, can_trim=False)
    if size is None:
        raise InputError(f"the configuration of {label} does not name its layers and widths", OTHER_TEACHERS)
    if known:
        return size
    return replace(size, counted=counted_bytes((one.shape for one in encoder.parameters()), size))


def _check_convertible(encoder: Encoder, reporter: Reporter, *, known: bool) -> None:
    """Raise InputError if the model cannot be exported as a graph; `known`: its architecture can."""
    try:
        require_tokenizer(encoder)
        if not known:
            with reporter.phase("checking that the teacher can be converted to ONNX"):
                require_padding_ignored(encoder, *SAMPLE)
                convert(encoder)
    except SentcompressError as error:
        raise InputError(error.message, "choose another `teacher`: compress exports an ONNX graph") from None


def _documents(params: Params) -> Documents:
    """The documents, by absolute paths, so that the recipe can be run from any folder."""
    return Documents(
        inputs=[absolute(one) for one in params.inputs],
        queries=[absolute(str(one)) for one in params.queries],
        judged=absolute(str(params.judged)) if params.judged else None,
        columns=list(params.column),
        id_column=params.id_column,
        skip_bad=params.skip_bad,
        text_as=params.text_as,
        general=[absolute(one) for one in params.general_text],
    )


def candidates_within(params: Params, found: NamedModel, teacher: TransformerSize, most: int) -> list[Candidate]:
    """The shapes to train, the most promising first: those whose int8 graph has at most `most` bytes.

    If the teacher itself fits and speed is not preferred, it is the only one. If the first shape is good from the
    start, there are only a few; see `FOR_NEW_SHAPES`.

    Raises:
        UsageError: if none fits; it names the smallest limit that is sufficient.
    """
    own, fast = own_shape(teacher, params.teacher), params.prefer == "speed"
    # Whether other architectures can be exported is tried, see `_check_convertible`.
    exportable = own.is_exportable or not teacher.can_cut
    if own.bytes <= most and exportable and not fast:
        return [own]
    published = found.source.label == EMBEDDED_LABEL
    shapes = fitting(teacher, most, with_published=published, count=CANDIDATES, fast=fast)
    if shapes and shapes[0].is_good:
        enough = read_seconds(params.time) >= FOR_NEW_SHAPES
        shapes = [shape for shape in shapes if enough or shape.is_good][: 1 if shapes[0].whole else BESIDE_GOOD]
    if not shapes:
        raise _nothing_fits(found.label, teacher, own, most, fast=fast)
    return shapes


def _nothing_fits(label: str, teacher: TransformerSize, own: Candidate, most: int, *, fast: bool) -> UsageError:
    """The error if no shape fits; its hint has the smallest size that does."""
    least = smallest(teacher, fast=fast) or own
    allowed = f"allow `max_bytes` {ceil(least.bytes / 1e5) / 10:.1f}MB"
    told = f"the smallest has {told_shapes([least])}"
    others: list[str] = []
    if least.untrained:
        told = f"the teacher itself is {told_bytes(least.bytes)} as an int8 graph"
    if not teacher.can_cut:
        allowed = " and ".join([*(["omit `prefer`"] if fast else []), *([allowed] if own.bytes > most else [])])
        what = f"{label} cannot be made smaller: the layers of its architecture cannot be cut"
        others = ["distill a student of another architecture from it, step by step"]
    elif fast and least.untrained:
        allowed = "omit `prefer`"
        what = f"no model cut from {label} computes at most half of what it does"
    elif fast:
        what = f"no model that computes at most half of what {label} does fits into {told_bytes(most)}"
    else:
        what = f"no model cut from {label} fits into {told_bytes(most)}"
    return UsageError(what, [f"{told}: {allowed}", *others])


def _budget(params: Params, load: EmbeddingLoad, candidates: Sequence[Candidate]) -> Budget:
    trained = 0 if candidates[0].untrained else len(candidates)
    try:
        return share_out(read_seconds(params.time), load, trained, candidates[0].is_averaged)
    except TooShortError as error:
        least = error.least
        texts = f"a sample of {least.texts:,} of the {load.texts:,} texts" if least.texts else f"{load.texts:,} texts"
        raise UsageError(
            f"`time` {params.time} is too short: at this machine's current speed, {told_time(load.spent)} are needed "
            f"to read the documents and measure this speed, {told_time(least.embedding)} to encode {texts} with the "
            f"teacher, {told_time(LEAST_TRAINING)} to train, and {told_time(least.measuring)} to measure the result",
            f"allow `time` {ceil(error.needed / 60)}m",
        ) from None
