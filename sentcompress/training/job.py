"""One training job: what `distill`, `finetune` and `train-teacher` share, once they have a model, data and a method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch

from sentcompress.commands.training import TrainingOptions
from sentcompress.errors import InputError, SentcompressError, TrainingError, UsageError
from sentcompress.json_documents import read_json, write_json
from sentcompress.methods import package_of
from sentcompress.methods.base import Method, Shapes
from sentcompress.methods.hyperparameters import Hyperparameters
from sentcompress.models.devices import pick_device
from sentcompress.models.encoder import Encoder
from sentcompress.models.shape import Size
from sentcompress.models.sources import MODEL_FOLDER
from sentcompress.models.token_batches import Tokenize, TokenRows
from sentcompress.plain_text import shell_word
from sentcompress.process_memory import peak_memory
from sentcompress.progress import Reporter
from sentcompress.ranks.alone import Ranks
from sentcompress.ranks.builds import find_shared, shared_build
from sentcompress.ranks.group import joined
from sentcompress.store import LOG, SCAFFOLD, Artifact, Build, Request, WorkDirectory, file_digest, name_part
from sentcompress.training.batches import WHOLE
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.data import STATE, TrainingData, tokenised
from sentcompress.training.deploy import CHECKED, Deployed, deploy
from sentcompress.training.dev import ELSEWHERE, Dev
from sentcompress.training.given_dev import GivenDev
from sentcompress.training.loop import Training
from sentcompress.training.residence import Residence
from sentcompress.training.run_state import Progress
from sentcompress.training.settings import Settings
from sentcompress.training.token_cache import TextFiles
from sentcompress.training.views import Views

CHECKPOINTS = f"{STATE}/checkpoints"
BEST = f"{SCAFFOLD}/best"
# The facts of a completed training run, and the digests of its files.
OUTCOME = f"{SCAFFOLD}/outcome.json"


@dataclass(frozen=True)
class Preparation:
    """A model that is prepared for training, the same for all training commands.

    Attributes:
        params: the options of the command.
        encoder: the model as it starts.
        size: its size, which the recipe depends on.
        filled: the sources of the options that the command filled in itself, by name.
    """

    params: TrainingOptions
    encoder: Encoder
    size: Size
    build: Build
    reporter: Reporter
    ranks: Ranks
    filled: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        """The hyperparameters; the model may read less of a text than was asked for, which is reported."""
        asked: Settings = self.params.settings(self.size)
        longest = self.encoder.text.max_length
        if self.params.max_length is not None and self.params.max_length > longest:
            self.reporter.note(f"texts are cut at {longest:,} tokens, as many as the model reads")
        return replace(asked, max_length=min(asked.max_length, longest))

    @property
    def hyperparameters(self) -> Hyperparameters:
        """The hyperparameters with their sources, for the record."""
        found: Hyperparameters = self.params.hyperparameters(self.size, self.filled)
        return found

    @property
    def device(self) -> torch.device:
        """The device that is trained on."""
        return pick_device(self.params.device)

    @cached_property
    def residence(self) -> Residence:
        """Where tokens and teacher vectors are kept."""
        return Residence(self.device, self.reporter)

    def tokens(self, table: TextFiles, name: str = "tokens") -> TokenRows:
        """The token ids of a sentence table, under a name in the build."""
        made = tokenised(self.encoder, self.settings, table, self.build, self.reporter, self.ranks, name)
        return self.residence.tokens(made)

    def job(self, method: Method, data: TrainingData, views: Views, facts: Mapping[str, Any]) -> TrainingJob:
        """The training run."""
        self.residence.tell()
        return TrainingJob(self, method, data, views, facts)


@dataclass(frozen=True)
class TrainingJob:
    """A training run with everything it needs.

    Attributes:
        facts: facts of the command, which come first in the record.
    """

    prepared: Preparation
    method: Method
    data: TrainingData
    views: Views
    facts: Mapping[str, Any]

    def run(self, chosen_by: Callable[[Tokenize, int], Dev] | None) -> Artifact | None:
        """Train, write the model with the best weights, read it back, check it, and finish the artifact.

        Args:
            chosen_by: the opened data of `dev` for checkpoint selection; None: rows of the data are held out.

        Returns:
            The artifact; None on all ranks but the first, which only take part in the training.

        Raises:
            InputError: if there are too few rows to hold some out.
            TrainingError: if the loss or a gradient becomes NaN or infinite; the best weights so far are kept as a
                model folder.
        """
        self._tell_numbers()
        prepared, build = self.prepared, self.prepared.build
        given = chosen_by(prepared.encoder.tokenize, prepared.encoder.padding) if chosen_by else None
        rows, dev = self.data.rows_and_dev(given, prepared.settings.seed)
        training = Training(
            encoder=prepared.encoder,
            method=self.method,
            plan=self.data.plan(rows, prepared.settings),
            collate=self.data.collate,
            views=self.views,
            dev=dev,
            settings=prepared.settings,
            device=prepared.device,
            checkpoints=Checkpoints(build, CHECKPOINTS, prepared.reporter, background=prepared.device.type == "cuda"),
            log_path=build.path / LOG,
            reporter=prepared.reporter,
            ranks=prepared.ranks,
        )
        progress = self._train(training)
        if not prepared.ranks.first:
            return None
        warn_of_start(progress, prepared.reporter)
        saved = self._deploy(MODEL_FOLDER, training)
        facts = self._record(progress, saved, dev, len(rows))
        with build.write(OUTCOME) as path:
            write_json(path, {"facts": facts, "files": _digests(build)})
        return build.finish(facts)

    def _tell_numbers(self) -> None:
        """Report the hyperparameters, and the source of the learning rate."""
        reporter, source = self.prepared.reporter, self.prepared.hyperparameters.lr.source
        numbers, options = self.prepared.hyperparameters.values(), self.method.settings
        if (ratio := self.prepared.settings.warmup_ratio) is not None:
            # In place of the recipe's steps and epochs.
            numbers = {name: value for name, value in numbers.items() if not name.startswith("warmup_")}
            numbers["warmup_ratio"] = ratio
        told = [f"{name} {_shown(value)}" for name, value in numbers.items() if value is not None and name != "lr"]
        reporter.note(f"learning rate {numbers['lr']:g} ({source})")
        reporter.note(", ".join([*told, *(f"{name}={_shown(value)}" for name, value in options.items())]))

    def _train(self, training: Training) -> Progress:
        try:
            return training.run()
        except TrainingError as error:
            try:
                raise self._with_best(training, error) from None
            finally:
                # The end of one rank ends all, so the others wait until rank 0 has written the model.
                self.prepared.ranks.meet()

    def _with_best(self, training: Training, error: TrainingError) -> TrainingError:
        """The error, after the best weights so far have been written."""
        if training.selection.best is None:
            return error
        training.selection.restore()
        try:
            self._deploy(BEST, training)
        except SentcompressError:
            return error  # the best weights so far are not usable either
        folder = self.prepared.build.path / BEST
        kept = f"the best weights so far are in the model folder {folder}; a new run under another `name` keeps it"
        return TrainingError(error.message, f"{error.hint}; {kept}")

    def _deploy(self, name: str, training: Training) -> Deployed:
        """Save the restored weights as a model folder of that name."""
        batch = self.data.collate(training.plan.sample(CHECKED), WHOLE).to(self.prepared.device)
        with self.prepared.build.write(name) as folder:
            return deploy(
                self.prepared.encoder,
                self.method,
                folder,
                batch,
                training.selection.scored_best(),
                trust_remote_code=self.prepared.params.trust_remote_code,
            )

    def _record(self, progress: Progress, saved: Deployed, dev: Dev, rows: int) -> dict[str, Any]:
        return {
            **self.facts,
            "parameters": saved.parameters,
            "dimension": saved.dimension,
            "dev": progress.best_score,
            "dev_protocol": dev.protocol,
            "dev_before_training": progress.start_score,
            "best_step": progress.best_step,
            "steps": progress.step,
            "stopped": progress.stopped,
            "diagnosis": progress.warning or progress.vanished or "none",
            "mean_cosine": saved.health and saved.health.mean_cosine,
            "effective_rank": saved.health and saved.health.effective_rank,
            "training_rows": rows,
            "sentences_seen": progress.sentences,
            "tokens_seen": progress.tokens,
            "training_seconds": round(progress.seconds, 1),
            "sentences_per_second": round(progress.sentences / max(progress.seconds, 1e-9), 1),
            "peak_memory_bytes": _peak_memory(self.prepared.device),
            "device": str(self.prepared.device),
            **({"ranks": self.prepared.ranks.count} if self.prepared.ranks.count > 1 else {}),
            "compute_dtype": progress.dtype,
            "compute_dtype_reason": progress.dtype_reason,
            "recipe": self.prepared.hyperparameters.as_dict(),
        }


def warn_of_start(progress: Progress, reporter: Reporter) -> None:
    """Warn if the weights at the start score better than those at the end."""
    start, last = progress.start_score, progress.last_score
    if progress.best_step == 0:
        ended = "" if last is None else f", {last:.2f} at the end"
        reporter.warn(
            f"training did not improve the dev score ({progress.best_score:.2f} at the start{ended}): the initial "
            "weights are kept"
        )
    elif start is not None and last is not None and last < start:
        reporter.warn(
            f"the dev score is lower at the end of training ({last:.2f}) than at the start ({start:.2f}): "
            f"the weights of step {progress.best_step} ({progress.best_score:.2f}) are kept; try a lower `lr`"
        )


def train(
    params: TrainingOptions,
    request: Request,
    work: WorkDirectory,
    reporter: Reporter,
    prepare: Callable[[Build, Ranks], TrainingJob],
    dev: GivenDev | None,
) -> Artifact:
    """The artifact that a command asks for: the finished one, or that of the job which `prepare` makes.

    Raises:
        InputError: if what `dev` names or the data cannot be used.
        TrainingError: see `TrainingJob.run`.
        RankError: see `ranks.group.joined`.
    """
    # Graded pairs are read even if the result is fresh: a file that cannot be used is always an error.
    pairs = dev.open(reporter) if dev and not dev.documents else None
    with (
        joined(params, request, pick_device(params.device), reporter) as ranks,
        shared_build(ranks, work, request, force=params.force, reporter=reporter) as build,
    ):
        done = (build.fresh or finish_trained(build, reporter)) if ranks.first else None
        if not ranks.tell(done is not None):
            job = prepare(build, ranks)
            # Dev scores are computed by rank 0; another one only has to know that no rows are held out.
            elsewhere = (lambda *_: ELSEWHERE) if dev and not ranks.first else None
            done = job.run(elsewhere or (dev.open(reporter) if dev and not pairs else pairs))
        ranks.meet()
        return done or find_shared(ranks, work, request)


def training_request(
    params: TrainingOptions,
    name: str,
    settings: Settings,
    inputs: Mapping[str, str],
    resolved: Mapping[str, Any],
    dev: GivenDev | None,
    **chosen: Any,
) -> Request:
    """The request of a command that trains; see `Request.of`.

    Args:
        settings: the hyperparameters, before they are fitted to a model.
    """
    known = {**settings.that_matter(), **resolved, "options": params.method_options(), **package_of(params.method_name)}
    known |= dev.documents.resolved if dev and dev.documents else {}
    own = params.name or name_part(name + params.suffix())
    return Request.of(params, own, {**inputs, **(dev.inputs if dev else {})}, known, **chosen)


def make_method(params: TrainingOptions, shapes: Shapes) -> Method:
    """The method that a command asks for.

    Raises:
        UsageError: if its options do not fit the shapes.
    """
    try:
        made: Method = params.find_method()(shapes, params.method_options())
    except UsageError as error:
        name = params.method_name
        hint = error.hint or f"see: sentcompress methods show {shell_word(name)}"
        raise error.reworded(f"{name}: {error.message}", hint) from None
    return made


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


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _digests(build: Build) -> dict[str, str]:
    """SHA-256 of the files that training produces: the model and the log."""
    paths = [build.path / LOG, *sorted((build.path / MODEL_FOLDER).rglob("*"))]
    return {str(path.relative_to(build.path)): file_digest(path) for path in paths if path.is_file()}


def _peak_memory(device: torch.device) -> int:
    """The most memory that this process has had: the device's on a GPU, else what was resident."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return peak_memory()
