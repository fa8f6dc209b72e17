"""Whiten a model's vectors and fold the whitening into its last layer: shorter vectors without training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.commands.whiten import Params
from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding.engine import EncodeEngine
from sentcompress.errors import SentcompressError
from sentcompress.models.catalog import find_model, request_on_sentences
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import read_back, save_encoder
from sentcompress.models.principal_axes import PrincipalAxes, check_dimension, principal_axes, whitened
from sentcompress.models.sources import MODEL_FOLDER
from sentcompress.numeric import at_least, figure
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import Artifact, Build, WorkDirectory, ancestors, taught_by

COMMAND = Params.command
# Sentences on which the saved model is verified, and the smallest cosine to the whitened vectors.
CHECKED, LEAST_COSINE = 200, 0.999


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> Artifact:
    """Write the whitened model as an artifact of kind `students`.

    Raises:
        MissingArtifactError: if there are no sentences, or no student and no model was given.
        InputError: if the model cannot be loaded, its vectors are not usable, or `dim` exceeds their rank.
        SentcompressError: if the saved model does not give the whitened vectors; nothing is kept in that case.
    """
    params.check()
    pick_device(params.device)
    model = find_model(
        work,
        params.model,
        revision=params.revision,
        trust_remote_code=params.trust_remote_code,
        besides=COMMAND,
    )
    lineage = ancestors(work, model.reference, model.digest)
    sentences = _sentences(work, params.sentences, lineage)
    request = request_on_sentences(params, f"{model.slug}-whiten-{params.dim}", model, sentences)
    with work.build(request, force=params.force, reporter=reporter) as build:
        if build.fresh:
            return build.fresh
        encoder = model.load()
        facts = _Whitening(params, encoder, SentenceTable(sentences.path), build, reporter).run()
        return build.finish(
            {
                "method": COMMAND,
                "model": model.label,
                "teacher": taught_by(work, model.reference, model.digest) or model.label,
                "sentences": sentences.reference,
                **facts,
            }
        )


def _sentences(work: WorkDirectory, name: str | None, lineage: list[Artifact]) -> Artifact:
    """The given table; by default the one that the model was trained on, otherwise the newest."""
    own = [artifact for artifact in lineage if artifact.reference.startswith("sentences/")]
    return own[0] if name is None and own else work.get("sentences", name)


@dataclass
class _Whitening:
    """One build of a whitened model."""

    params: Params
    encoder: Encoder
    table: SentenceTable
    build: Build
    reporter: Reporter

    def run(self) -> dict[str, Any]:
        """Fit, fold, save and verify; returns the facts."""
        dim, width = self.params.dim, self.encoder.dimension
        sample = min(self.params.sample, len(self.table))
        check_dimension(dim, width, sample, "the model's")
        self.encoder.normalize = False  # whitening applies to the vectors before normalisation
        rows = np.random.default_rng(self.params.seed).choice(len(self.table), size=sample, replace=False)
        axes = self._fit(np.sort(rows), width)
        with self.build.write(MODEL_FOLDER) as folder:
            save_encoder(whitened(self.encoder, axes), folder)
            saved = read_back(folder, trust_remote_code=self.params.trust_remote_code)
            worst = self._check(saved, axes, np.sort(rows[:CHECKED]))
        return {
            "parameters": saved.count_parameters(),
            "dimension": saved.dimension,
            "model_dimension": width,
            "sample": sample,
            "explained_variance": float(axes.variances.sum()) / axes.total,
            "total_variance": axes.total,
            "smallest_variance": float(axes.variances[-1]),
            "check_min_cosine": worst,
        }

    def _fit(self, rows: npt.NDArray[np.int64], width: int) -> PrincipalAxes:
        # float32: bfloat16 rounding errors exceed the variance along the smallest axes.
        engine = EncodeEngine(self.encoder, device=self.params.device, dtype="float32")
        with self.reporter.track("encoding", total=len(rows)) as task:
            vectors = engine.stream(_texts(self.table, rows), task)
            pieces = (piece.astype(np.float64) for piece in vectors)
            return principal_axes(pieces, (len(rows), width), self.params.dim)

    def _check(self, saved: Encoder, axes: PrincipalAxes, rows: npt.NDArray[np.int64]) -> float:
        """The smallest cosine between the saved model's vectors and the whitened ones.

        Raises:
            SentcompressError: if it is below LEAST_COSINE.
        """
        texts = [text for chunk in _texts(self.table, rows) for text in chunk]
        device = self.params.device
        vectors = EncodeEngine(self.encoder, device=device, dtype="float32").encode(texts).astype(np.float64)
        expected = (vectors - axes.mean) @ axes.whitening().T
        found = EncodeEngine(saved, device=device, dtype="float32").encode(texts)
        # A vector equal to the mean has no direction.
        lengths = np.linalg.norm(expected, axis=1) * np.linalg.norm(found, axis=1)
        worst = float(((expected * found).sum(axis=1) / np.maximum(lengths, 1e-12)).min())
        if not at_least(worst, LEAST_COSINE):
            raise SentcompressError(
                f"the saved model has a cosine of {figure(worst, '.6f')} to the whitened vectors (float32 must reach "
                f"{LEAST_COSINE})",
                "the smallest variance is too close to the rounding error of float32; use a smaller `dim`",
            )
        return worst


def _texts(table: SentenceTable, rows: npt.NDArray[np.int64]) -> Iterator[list[str]]:
    """The texts of sorted rows, one file at a time."""
    start = 0
    for file, count in enumerate(table.file_rows):
        first, last = np.searchsorted(rows, (start, start + count))
        if first < last:
            texts = table.texts(file)
            yield [texts[row - start] for row in rows[first:last]]
        start += count
