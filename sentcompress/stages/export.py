"""Export a model as a sentence-transformers folder, ONNX graphs and a model card, and verify the exported files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from sentcompress.exporting.folder import check_own_loader, halve_weights
from sentcompress.exporting.formats import FOLDER, Format, Reader, find_formats, packages_of
from sentcompress.exporting.graph_formats import Int8Graph
from sentcompress.exporting.provenance import base_of, evaluations_of, measurements_of, teacher_of, with_teachers
from sentcompress.exporting.stored_vectors import SHOWN
from sentcompress.models.catalog import NamedModel, find_model, typed_name
from sentcompress.models.encoder import Encoder
from sentcompress.models.names import is_of_work
from sentcompress.models.prompts import DOCUMENT, QUERY
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


@dataclass(frozen=True)
class _Inputs:
    """The inputs of an export.

    Attributes:
        lineage: the ancestors of the model, itself first.
        sentences: the table that the texts of the verification are taken from; None: built-in ones.
        measured: measurements of the model, for its card.
        documents_by: the model that encodes the documents of the router; None: there is no router.
        weight_format: how the int8 graph is to store its weights.
    """

    model: NamedModel
    lineage: Sequence[Artifact]
    sentences: Artifact | None
    measured: Sequence[Artifact]
    quantizer: Artifact | None
    sets: Sequence[StsSet]
    calibration: NamedTexts | None
    documents_by: NamedModel | None
    notes: str
    weight_format: str


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Export the model; the artifact's folder is the exported model.

    Raises:
        SentcompressError: if the exported files fail verification; nothing is kept in that case.
        InputError: if a package required by a format is missing.
    """
    params.check()
    formats = find_formats(params.formats)
    inputs = _find_inputs(params, work)
    request = _request(params, inputs)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        _clear(build)  # from an interrupted run; rebuilding is faster than checking
        with _nothing_half_done(build), reporter.track("exporting", total=len(formats) + 1, unit="steps") as task:
            export = _Export(params, inputs, formats, build, reporter)
            facts = export.write(task)
            model, lineage = inputs.model, inputs.lineage
            teacher = teacher_of(model, lineage)
            card = Card(
                name=request.name,
                encoder=export.encoder,
                facts=facts,
                lineage=with_teachers(work, lineage),
                teacher=teacher,
                base=base_of(work, model, lineage),
                measured=evaluations_of(work, inputs.measured, lineage, reporter),
                license=params.license,
                languages=params.language,
                notes=inputs.notes,
            )
            with build.write(CARD) as path:
                path.write_text(card.render(), encoding="utf-8")
        return build.finish({**facts, "teacher": teacher, "model": model.label})


def _find_inputs(params: Params, work: WorkDirectory) -> _Inputs:
    model = find_model(work, params.model, revision=params.revision, trust_remote_code=params.trust_remote_code)
    if is_of_work(model.reference):
        work.get(*model.reference.split("/", 1)).require_contents()
    sets = read_sts(params.sts, "test") if params.sts else []
    lineage = ancestors(work, model.reference, model.digest)
    return _Inputs(
        model=model,
        lineage=lineage,
        sentences=_sentences(work, lineage),
        measured=measurements_of(work, model, lineage),
        quantizer=_quantizer(params, work, model),
        sets=sets,
        calibration=find_named_texts(work, params.calibrate) if params.calibrate else None,
        documents_by=_documents_by(params, work),
        notes=read_notes(params.notes) if params.notes is not None else "",
        weight_format=params.weight_format or weight_format_of(lineage) or INT8,
    )


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


def _documents_by(params: Params, work: WorkDirectory) -> NamedModel | None:
    """The model that encodes the documents of the router."""
    if params.router is None:
        return None
    return find_model(work, params.router, trust_remote_code=params.trust_remote_code)


def _request(params: Params, inputs: _Inputs) -> Request:
    model, documents_by = inputs.model, inputs.documents_by
    used = [*filter(None, (inputs.sentences, inputs.quantizer)), *inputs.measured]
    digests = {model.reference: model.digest} | {artifact.reference: artifact.digest for artifact in used}
    subsets = [subset for found in inputs.sets for subset in found.subsets]
    digests |= dict(subset.hub for subset in subsets if subset.hub)
    files = [path for subset in subsets for path in subset.files]
    digests |= file_inputs([*files, *([params.notes] if params.notes is not None else [])])
    digests |= inputs.calibration.inputs if inputs.calibration else {}
    digests |= {documents_by.reference: documents_by.digest} if documents_by else {}
    resolved = {
        "model": model.reference,
        "sets": [found.name for found in inputs.sets],
        "weight_format": inputs.weight_format,
        **packages_of(params.formats),
    }
    chosen = {"router": typed_name(params.router, documents_by)} if documents_by else {}
    return Request.of(
        params, params.name or model.slug, digests, resolved, model=typed_name(params.model, model), **chosen
    )


class _Export:
    """The files of an export, but its card: written into a build, and verified."""

    def __init__(
        self, params: Params, inputs: _Inputs, formats: Mapping[str, Format], build: Build, reporter: Reporter
    ) -> None:
        self._params, self._inputs, self._build, self._reporter = params, inputs, build, reporter
        self.encoder = inputs.model.load()
        if self.encoder.token_weights is not None:
            reporter.warn(
                "the model has token weights in a WordWeights module, which sentence-transformers and the ONNX "
                "graphs support, but not every server: see docs/weigh-tokens.md"
            )
        self._texts = verification.with_extremes(_sample(inputs.sentences), self.encoder)
        self._calibration_texts = _texts_to_calibrate_on(inputs.calibration) if inputs.calibration else []
        self._graph = Int8Graph(inputs.weight_format, self._calibration_texts or self._texts)
        # The graph of the registry does not know these texts and this weight format.
        self._formats = {name: self._graph if name == "int8" else one for name, one in formats.items()}

    def write(self, task: Task) -> dict[str, Any]:
        """Write all files and read them back; returns the facts."""
        facts = _write(self._build, self.encoder, self._formats, task, float16=self._params.float16)
        if "int8" in self._formats:
            facts["weight_format"] = self._weight_format()
        if self._inputs.quantizer:
            facts["vectors"] = self._with_quantizer(self._inputs.quantizer)
        if self._inputs.documents_by:
            facts["router"] = self._with_router(self._inputs.documents_by)
        if self._calibration_texts:
            facts["int8"] = self._calibrate()
            facts["bytes"] = _sizes(self._build, facts["bytes"])
        facts |= self._verify()
        task.advance()
        return facts

    def _weight_format(self) -> str:
        """How the int8 graph stores its weights; warns if that is not what was asked for."""
        written = self._graph.written_weight_format
        if written != self._graph.weight_format:
            self._reporter.warn(
                "the int8 graph stores its weights in int8: the rows of its matrices cannot be divided into "
                f"blocks of {BLOCK} weights, or are too few"
            )
        return written

    def _with_quantizer(self, quantizer: Artifact) -> dict[str, Any]:
        """Write the quantizer; returns its facts for the card."""
        with self._build.write(VECTORS) as folder:
            Quantizer.load(quantizer.path / VECTORS).save(folder)
        shown = {name: quantizer.facts[name] for name in SHOWN if name in quantizer.facts}
        return {"quantizer": quantizer.reference, **shown}

    def _with_router(self, documents_by: NamedModel) -> dict[str, Any]:
        """Write the router and verify it; returns its facts.

        Raises:
            InputError: if the vectors of the two models have different dimensions.
            SentcompressError: if it fails verification.
        """
        of_documents = documents_by.load()
        router.check_widths(self.encoder, of_documents, self._inputs.model.label, documents_by.label)
        routes = {QUERY: self.encoder, DOCUMENT: of_documents}
        own = {QUERY: self._texts, DOCUMENT: verification.with_extremes(self._texts, of_documents)}
        with self._build.write(router.FOLDER) as folder:
            router.write_router(routes, folder)
            trusted = self._params.trust_remote_code
            checked = router.verify_router(routes, own, folder, trust_remote_code=trusted)
            size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
        return {"documents": documents_by.label, "bytes": size, "checked": checked}

    def _calibrate(self) -> dict[str, Any]:
        """Fix the ranges of the int8 graph on the user's texts, if that is more exact; returns facts about it."""
        vectors = verification.unit(verification.encoder_vectors(self.encoder, self._texts))
        found = self._graph.calibrate(self.encoder, self._build.path, self._calibration_texts, self._texts, vectors)
        cosines = ", ".join(f"{name} {value:.4f}" for name, value in found["mean_cosine"].items())
        self._reporter.note(f"int8: {found['quantisation']} quantisation (mean cosine: {cosines})")
        return found

    def _verify(self) -> dict[str, Any]:
        """Read every format back and compare its vectors with the model's; returns this and its STS scores."""
        encoder, folder, texts = self.encoder, self._build.path, self._texts
        trusted = self._params.trust_remote_code
        readers = {
            name: verification.BoundedReader(one.open(encoder, folder, trust_remote_code=trusted), encoder.tokenize)
            for name, one in self._formats.items()
        }
        checked = verification.verify_formats(encoder, texts, self._formats, readers, self._reporter)
        if self._params.float16:
            expected = verification.encoder_vectors(encoder, texts)
            check_own_loader(folder, texts, expected, trust_remote_code=trusted)
        return {"checked": checked, "sts": [_score(found, self._formats, readers) for found in self._inputs.sets]}


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


def _sizes(build: Build, files: Iterable[str]) -> dict[str, int]:
    return {file: (build.path / file).stat().st_size for file in files}


def _texts_to_calibrate_on(calibration: NamedTexts) -> list[str]:
    """The texts to calibrate on.

    Raises:
        InputError: if there are none.
    """
    texts = sample_texts(calibration.read(), CALIBRATION_TEXTS, seed=0).texts
    if not texts:
        raise InputError("there are no texts to calibrate on", "`calibrate` takes files with one text per line")
    return list(texts)


def _files(folder: Path) -> list[str]:
    """The files of the export, without those of the store."""
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(path.as_posix() for path in paths if path.parts[0] not in (REQUEST, SCAFFOLD))


def _score(found: StsSet, formats: Mapping[str, Format], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Spearman x 100 of one STS set with each format; inexact formats also one text at a time, like single queries."""
    texts = sorted({text for subset in found.subsets for text in (*subset.first, *subset.second)})
    texts.sort(key=len)  # batches of similar length, always the same ones
    rows = {text: row for row, text in enumerate(texts)}
    name = found.name if found.split == "test" else f"{found.name}, {found.split} split"
    scores: dict[str, Any] = {"set": name, "pairs": len(found)}
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
