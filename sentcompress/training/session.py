"""What every command that trains does around the loop: rows with their tokens, the best weights saved, the record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sentcompress.documents import read_json, to_json
from sentcompress.encoding.vector_shards import VectorShards
from sentcompress.errors import InputError, SentcompressError, TrainingError
from sentcompress.methods.base import Method
from sentcompress.methods.hyperparameters import Hyperparameters
from sentcompress.models.catalog import MODEL_FOLDER
from sentcompress.models.encoder import Encoder
from sentcompress.progress import Reporter
from sentcompress.store import SCAFFOLD, Artifact, Build, file_digest
from sentcompress.training.batches import Batch, BatchPlan, RowField, Rows
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.deploy import Deployed, deploy
from sentcompress.training.dev import Dev
from sentcompress.training.loop import Progress, Training
from sentcompress.training.settings import Settings
from sentcompress.training.token_cache import Table, TokenCache, build_token_cache
from sentcompress.training.views import Views

LOG = "log.jsonl"
# What only the training needs; gone when the artifact is finished.
STATE = f"{SCAFFOLD}/state"
CHECKPOINTS = f"{STATE}/checkpoints"
BEST = f"{SCAFFOLD}/best"
# The facts of a completed training run, and the digests of its files.
OUTCOME = f"{SCAFFOLD}/outcome.json"


def tokenised(
    encoder: Encoder, settings: Settings, table: Table, build: Build, reporter: Reporter, name: str = "tokens"
) -> TokenCache:
    """The token ids of a sentence table, made once for a build."""

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        return encoder.tokenize(texts, settings.max_length)

    return build_token_cache(build, f"{STATE}/{name}", table, tokenize, reporter)


def vector_field(vectors: VectorShards) -> RowField:
    """Cached vectors of rows: [B] -> [B, D]."""

    def take(rows: Rows) -> Tensor:
        # torch's own memory is aligned the same way in every process; sums over it round the same way too.
        found = torch.empty((len(rows), vectors.dimension), dtype=torch.float32)
        found.numpy()[:] = vectors.rows(rows)
        return found

    return take


def number_field(numbers: Rows) -> RowField:
    """A number of each row: [B] -> [B]."""
    return lambda rows: torch.from_numpy(np.ascontiguousarray(numbers[rows]))


@dataclass(frozen=True)
class Session:
    """A training run with everything it needs but the data.

    `trust_remote_code`: whether the user allows the model to run its own code when it is read back.
    """

    encoder: Encoder
    method: Method
    settings: Settings
    device: torch.device
    build: Build
    reporter: Reporter
    trust_remote_code: bool

    def train(
        self, plan: BatchPlan, collate: Callable[[Rows], Batch], views: Views, dev: Dev
    ) -> tuple[Progress, Deployed, Dev]:
        """Train, write the student with the best weights into the build, read it back and score it.

        Raises:
            TrainingError: if the loss is no longer a number; the best weights so far are left as a model folder.
        """
        training = Training(
            encoder=self.encoder,
            method=self.method,
            plan=plan,
            collate=collate,
            views=views,
            dev=dev,
            settings=self.settings,
            device=self.device,
            checkpoints=Checkpoints(self.build, CHECKPOINTS, self.reporter),
            log_path=self.build.path / LOG,
            reporter=self.reporter,
        )
        progress = self._run(training)
        if progress.best_step == 0:
            self.reporter.warn(
                f"training did not make the student better than its start (dev {progress.best_score:.2f}): "
                "the weights it started from are kept"
            )
        measured = self._deploy(MODEL_FOLDER, dev, progress.best_score)
        return progress, measured, dev

    def _run(self, training: Training) -> Progress:
        try:
            return training.run()
        except TrainingError as error:
            if training.best is None:
                raise
            training.restore_best()
            try:
                self._deploy(BEST, training.dev, training.progress.best_score)
            except SentcompressError:
                raise error from None  # the best weights so far are not usable either
            folder = self.build.path / BEST
            kept = (
                f"the best weights so far are the model folder {folder}; a new run under another `name` leaves it there"
            )
            raise TrainingError(error.message, f"{error.hint}; {kept}") from None

    def _deploy(self, name: str, dev: Dev, chosen_by: float | None) -> Deployed:
        with self.build.write(name) as folder:
            return deploy(
                self.encoder,
                self.method,
                folder,
                dev,
                self.device,
                chosen_by=chosen_by,
                trust_remote_code=self.trust_remote_code,
            )

    def facts(
        self, trained: tuple[Progress, Deployed, Dev], rows: int, recipe: Hyperparameters, own: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The record of a run; `own` is what the command adds in front."""
        progress, measured, dev = trained
        return {
            **own,
            "parameters": measured.parameters,
            "dimension": measured.dimension,
            "dev": progress.best_score,
            "dev_protocol": dev.protocol,
            "dev_of_saved_model": measured.score,
            "dev_before_training": progress.start_score,
            "best_step": progress.best_step,
            "steps": progress.step,
            "stopped": progress.stopped,
            "diagnosis": progress.warning or "none",
            "mean_cosine": measured.health and measured.health.mean_cosine,
            "effective_rank": measured.health and measured.health.effective_rank,
            "training_rows": rows,
            "sentences_seen": progress.sentences,
            "tokens_seen": progress.tokens,
            "training_seconds": round(progress.seconds, 1),
            "sentences_per_second": round(progress.sentences / max(progress.seconds, 1e-9), 1),
            "peak_memory_bytes": _peak_memory(self.device),
            "device": str(self.device),
            "compute_dtype": progress.dtype,
            "compute_dtype_reason": progress.dtype_reason,
            "recipe": recipe.as_dict(),
        }

    def finish(self, facts: Mapping[str, Any]) -> Artifact:
        """Record the outcome of the training, and finish the artifact."""
        with self.build.write(OUTCOME) as path:
            path.write_text(to_json({"facts": facts, "files": _digests(self.build)}) + "\n", encoding="utf-8")
        return self.build.finish(facts)


def finish_trained(build: Build, reporter: Reporter) -> Artifact | None:
    """Finish a build that was interrupted after training was complete; None if training has to continue.

    The complete model and its facts are already saved, so neither checkpoints nor inputs are needed.
    """
    if not build.has(OUTCOME):
        return None
    try:
        outcome = read_json(build.path / OUTCOME)
        whole = outcome["files"] == _digests(build) and isinstance(outcome["facts"], dict)
    except (InputError, KeyError, TypeError):
        whole = False
    if not whole:
        reporter.warn(f"the model in {build.path} was changed after training; it will be rebuilt")
        return None
    return build.finish(outcome["facts"])


def _digests(build: Build) -> dict[str, str]:
    """SHA-256 of the files that training produces: the model and the log."""
    paths = [build.path / LOG, *sorted((build.path / MODEL_FOLDER).rglob("*"))]
    return {str(path.relative_to(build.path)): file_digest(path) for path in paths if path.is_file()}


def _peak_memory(device: torch.device) -> int | None:
    """The most memory that this process has had: the device's on a GPU, else what was resident."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # Linux counts in kilobytes
