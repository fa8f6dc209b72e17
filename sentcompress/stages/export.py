"""Export a model as a sentence-transformers folder, ONNX graphs and a model card, and verify the exported files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.commands.export import Params
from sentcompress.corpora.named_texts import NamedTexts, find_named_texts
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.corpora.sts import StsSet, read_sts
from sentcompress.corpora.text_sample import sample_texts
from sentcompress.errors import InputError
from sentcompress.evaluation.similarity import UndefinedError, cosine_of_pairs
from sentcompress.evaluation.sts import Graded, score_set
from sentcompress.exporting import router, verification
from sentcompress.exporting.card import Card, read_notes
from sentcompress.exporting.formats import FOLDER, Format, Reader, find_formats, packages_of
from sentcompress.exporting.graph_formats import Int8Graph
from sentcompress.exporting.half_precision import check_own_loader, halve_weights
from sentcompress.exporting.provenance import base_of, evaluations_of, measurements_of, teacher_of, with_teachers
from sentcompress.exporting.stored_vectors import SHOWN
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.encoder import Encoder
from sentcompress.models.names import KINDS
from sentcompress.models.weight_formats import BLOCK, INT8
from sentcompress.plain_text import shell_word
from sentcompress.progress import LOGGED, Reporter, Task
from sentcompress.quantization.quantizer import FOLDER as VECTORS
from sentcompress.quantization.quantizer import Quantizer
from sentcompress.store import (
    REQUEST,
    SCAFFOLD,
    Artifact,
    Build,
    Request,
    WorkDirectory,
    ancestors,
    file_inputs,
    weight_format_of,
)

CARD = "README.md"
SAMPLE = 200
CALIBRATION_TEXTS = 200


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Export the model; the artifact's folder is the exported model.

    Raises:
        SentcompressError: if the exported files fail verification; nothing is kept in that case.
        InputError: if a package required by a format is missing.
    """
    params.check()
    formats = find_formats(params.formats)
    model = find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    if model.reference.partition("/")[0] in KINDS:
        work.get(*model.reference.split("/", 1)).require_contents()
    sets = read_sts(params.sts, "test") if params.sts else []
    lineage = ancestors(work, model.reference, model.digest)
    sentences = _sentences(work, lineage)
    measured = measurements_of(work, model, lineage)
    quantizer = _quantizer(params, work, model)
    used = [artifact for artifact in (sentences, quantizer) if artifact]
    calibration = find_named_texts(work, params.calibrate) if params.calibrate else None
    documents = _of_documents(params, work)
    notes = read_notes(params.notes) if params.notes is not None else ""
    weights = params.weight_format or weight_format_of(lineage) or INT8
    request = _request(params, model, documents, sets, [*used, *measured], calibration, weights)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        _clear(build)  # from an interrupted run; rebuilding is faster than checking
        with _nothing_half_done(build), reporter.track("exporting", total=len(formats) + 1, unit="steps") as task:
            encoder = model.load()
            if encoder.token_weights is not None:
                reporter.warn(
                    "the model has token weights in a WordWeights module, which sentence-transformers and the ONNX "
                    "graphs support, but not every server: see docs/weigh-tokens.md"
                )
            texts = verification.with_extremes(_sample(sentences), encoder)
            calibrating = _calibrating(calibration) if calibration else []
            graph = Int8Graph(weights, calibrating or texts)
            if "int8" in formats:
                formats["int8"] = graph
            facts = _write(build, encoder, formats, task, float16=params.float16)
            if "int8" in formats:
                facts["graph_weights"] = graph.weights
                if graph.weights != weights:
                    reporter.warn(
                        "the int8 graph stores its weights in int8: the rows of its matrices cannot be divided into "
                        f"blocks of {BLOCK} weights, or are too few"
                    )
            if quantizer:
                facts["vectors"] = _with_quantizer(build, quantizer)
            if documents:
                facts["router"] = _with_router(params, build, encoder, model, documents, texts)
            if calibrating:
                facts["int8"] = _calibrate(build, encoder, formats, calibrating, texts, reporter)
                facts["bytes"] = _sizes(build, facts["bytes"])
            facts |= _verify(params, build, encoder, formats, texts, sets, reporter)
            task.advance()
            teacher, found = teacher_of(model, lineage), evaluations_of(work, measured, lineage, reporter)
            card = Card(
                name=request.name,
                encoder=encoder,
                facts=facts,
                lineage=with_teachers(work, lineage),
                teacher=teacher,
                base=base_of(work, model, lineage),
                measured=found,
                license=params.license,
                languages=params.language,
                notes=notes,
            )
            with build.write(CARD) as path:
                path.write_text(card.render(), encoding="utf-8")
        return build.finish({**facts, "teacher": teacher, "model": model.label})


def _quantizer(params: Params, work: WorkDirectory, model: NamedModel) -> Artifact | None:
    """The named quantizer.

    Raises:
        InputError: if it was fitted to another model.
    """
    if params.quantizer is None:
        return None
    found = work.get("quantizers", params.quantizer)
    fitted = found.facts["model"]
    if (fitted["reference"], fitted["digest"]) != (model.reference, model.digest):
        state = "as it was before it changed" if fitted["reference"] == model.reference else f"not to {model.label}"
        raise InputError(
            f"{found.reference} was fitted to {fitted['label']}, {state}",
            f"run: sentcompress fit-quantizer --model {shell_word(model.name)} --work {shell_word(work.path)}",
        )
    found.require_contents()
    return found


def _with_quantizer(build: Build, quantizer: Artifact) -> dict[str, Any]:
    """Write the quantizer into the export; returns its facts for the card."""
    with build.write(VECTORS) as folder:
        Quantizer.load(quantizer.path / VECTORS).save(folder)
    return {"quantizer": quantizer.reference, **{name: quantizer.facts[name] for name in SHOWN}}


def _of_documents(params: Params, work: WorkDirectory) -> NamedModel | None:
    """The model of the router's documents."""
    if params.router is None:
        return None
    return find_model(work, params.router, trust_remote_code=params.trust_remote_code)


def _with_router(
    params: Params, build: Build, encoder: Encoder, model: NamedModel, documents: NamedModel, texts: Sequence[str]
) -> dict[str, Any]:
    """Write the router into the export and verify it; returns its facts.

    Raises:
        InputError: if the vectors of the two models have different dimensions.
        SentcompressError: if it fails verification.
    """
    of_documents = documents.load()
    router.check_widths(encoder, of_documents, model.label, documents.label)
    routes = {router.QUERY: encoder, router.DOCUMENT: of_documents}
    own = {router.QUERY: texts, router.DOCUMENT: verification.with_extremes(texts, of_documents)}
    with build.write(router.FOLDER) as folder:
        router.write_router(routes, folder)
        checked = router.verify_router(routes, own, folder, trust_remote_code=params.trust_remote_code)
        size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
    return {"documents": documents.label, "bytes": size, "checked": checked}


def _request(
    params: Params,
    model: NamedModel,
    documents: NamedModel | None,
    sets: Sequence[StsSet],
    used: Sequence[Artifact],
    calibration: NamedTexts | None,
    weights: str,
) -> Request:
    inputs = {model.reference: model.digest} | {artifact.reference: artifact.digest for artifact in used}
    files = {path.resolve() for found in sets for subset in found.subsets for path in subset.files}
    inputs |= file_inputs([*sorted(files), *([params.notes] if params.notes is not None else [])])
    inputs |= calibration.inputs if calibration else {}
    inputs |= {documents.reference: documents.digest} if documents else {}
    told = {"model": model.reference, "sets": [found.name for found in sets], "weight_format": weights}
    resolved = {**told, **packages_of(params.formats)}
    chosen = {"router": typed_name(params.router, documents)} if documents else {}
    return Request.of(
        params, params.name or model.slug, inputs, resolved, model=typed_name(params.model, model), **chosen
    )


def _sentences(work: WorkDirectory, lineage: Sequence[Artifact]) -> Artifact | None:
    """The sentences that the model was trained on, otherwise the newest ones."""
    own = [artifact for artifact in lineage if artifact.reference.startswith("sentences/")]
    if own:
        return own[0]
    return work.get("sentences") if work.names("sentences") else None


def _sample(sentences: Artifact | None) -> list[str]:
    """Sentences for the verification: half at random, half spread over all lengths."""
    if sentences is None:
        return list(verification.BUILT_IN_SAMPLE)
    table = SentenceTable(sentences.path)
    largest = max(range(len(table.files)), key=lambda number: table.file_rows[number])
    texts = [text for text in table.texts(largest) if text.strip()]
    rows = np.random.default_rng(0).choice(len(texts), size=min(SAMPLE // 2, len(texts)), replace=False)
    by_length = sorted(texts, key=len)
    spread = np.linspace(0, len(texts) - 1, SAMPLE // 2).astype(int)
    return list(dict.fromkeys([texts[row] for row in rows] + [by_length[row] for row in spread]))


def _clear(build: Build) -> None:
    for path in build.path.iterdir():
        if path.name not in (REQUEST, SCAFFOLD):  # where a thread writes the progress
            build.remove(path.name)


@contextmanager
def _nothing_half_done(build: Build) -> Iterator[None]:
    """Remove all files if the export fails or is interrupted, so that no partial export can be used."""
    try:
        yield
    except BaseException:
        _clear(build)
        raise


def _write(
    build: Build, encoder: Encoder, formats: Mapping[str, Format], task: Task, *, float16: bool
) -> dict[str, Any]:
    """Write every format; returns facts about the model and the files of each format."""
    written: dict[str, list[str]] = {}
    for name, one in formats.items():
        before = set(_files(build.path))
        one.write(encoder, build.path)
        if float16 and name == FOLDER:
            halve_weights(build.path)
        written[name] = [file for file in _files(build.path) if file not in before]
        task.advance()
    # Of the sentence-transformers folder, only the weights are listed.
    shown = [file for name in formats for file in written[name] if name != FOLDER or file.endswith(".safetensors")]
    return {
        "dimension": encoder.dimension,
        "parameters": encoder.count_parameters(),
        "weights": "float16" if float16 else "float32",
        "formats": {name: {"title": one.title, "files": written[name]} for name, one in formats.items()},
        "bytes": _sizes(build, sorted(shown)),
    }


def _verify(
    params: Params,
    build: Build,
    encoder: Encoder,
    formats: Mapping[str, Format],
    texts: list[str],
    sets: Sequence[StsSet],
    reporter: Reporter,
) -> dict[str, Any]:
    """Read every format back and compare its vectors with the model's; returns this and its scores on the STS sets."""
    readers = {
        name: verification.BoundedReader(
            one.open(encoder, build.path, trust_remote_code=params.trust_remote_code), encoder.tokenize
        )
        for name, one in formats.items()
    }
    checked = verification.verify_formats(encoder, texts, formats, readers, reporter)
    if params.float16:
        expected = verification.encoder_vectors(encoder, texts)
        check_own_loader(build.path, texts, expected, trust_remote_code=params.trust_remote_code)
    return {"checked": checked, "sts": [_score(found, formats, readers) for found in sets]}


def _sizes(build: Build, files: Iterable[str]) -> dict[str, int]:
    return {file: (build.path / file).stat().st_size for file in files}


def _calibrating(calibration: NamedTexts) -> list[str]:
    """The texts to calibrate on.

    Raises:
        InputError: if there are none.
    """
    texts = sample_texts(calibration.read(), CALIBRATION_TEXTS, seed=0).texts
    if not texts:
        raise InputError("there are no texts to calibrate on", "`calibrate` takes files with one text per line")
    return list(texts)


def _calibrate(
    build: Build,
    encoder: Encoder,
    formats: Mapping[str, Format],
    texts: Sequence[str],
    held_out: Sequence[str],
    reporter: Reporter,
) -> dict[str, Any]:
    """Fix the ranges of the int8 graph on the user's texts, if that is more exact; returns facts about it."""
    graph = formats["int8"]
    assert isinstance(graph, Int8Graph)
    vectors = verification.unit(verification.encoder_vectors(encoder, held_out))
    found = graph.calibrate(encoder, build.path, texts, held_out, vectors)
    cosines = ", ".join(f"{name} {value:.4f}" for name, value in found["mean_cosine"].items())
    reporter.note(f"int8: {found['quantisation']} quantisation (mean cosine: {cosines})")
    return found


def _files(folder: Path) -> list[str]:
    """The files of the export, without those of the store."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in paths if path.parts[0] not in (REQUEST, SCAFFOLD))


def _score(found: StsSet, formats: Mapping[str, Format], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Spearman x 100 of one STS set with each format; inexact formats also one text at a time, like single queries."""
    texts = sorted({text for subset in found.subsets for text in (*subset.first, *subset.second)})
    texts.sort(key=len)  # batches of similar length, always the same ones
    rows = {text: row for row, text in enumerate(texts)}
    scores: dict[str, Any] = {"set": found.name, "pairs": len(found)}
    beside = [name for name in formats if name != FOLDER]
    ways = {name: readers[name].vectors(texts) for name in beside}
    ways |= {f"{name}_single": readers[name].vectors(texts, 1) for name in beside if not formats[name].exact}
    for way, vectors in ways.items():
        graded = [
            Graded(
                np.array(subset.scores),
                cosine_of_pairs(vectors[[rows[t] for t in subset.first]], vectors[[rows[t] for t in subset.second]]),
            )
            for subset in found.subsets
        ]
        try:
            scores[way] = score_set(graded).spearman
        except UndefinedError as error:
            raise InputError(f"{found.name} has no score with the format {way}: {error}") from None
    return scores
