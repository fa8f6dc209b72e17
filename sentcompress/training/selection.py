"""Checkpoint selection: dev scores, the best weights so far, early stopping, and warnings about the student."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from sentcompress.errors import TrainingError
from sentcompress.methods.base import Method
from sentcompress.models.encoder import Encoder
from sentcompress.models.int4 import RoundedWeights
from sentcompress.numeric import at_most
from sentcompress.progress import Reporter
from sentcompress.ranks.alone import Ranks
from sentcompress.signals import StoppedError, stopped
from sentcompress.training.checkpoint import Weights, copy_weights
from sentcompress.training.dev import LOWEST, Dev, score_of
from sentcompress.training.health import Health, Watch, diagnose, vanished_kernel
from sentcompress.training.optimizer import RunningMean
from sentcompress.training.run_state import Progress
from sentcompress.training.settings import Settings


@dataclass(kw_only=True)
class Selection:
    """Scores the weights of a run, and keeps the best.

    Attributes:
        encoder, method: the modules that are trained.
        dev: the score, which rank 0 computes.
        mean: the running mean of the weights, which is scored and kept instead of them; None without one.
        rounded: rounds the weights to 4 bits before they are scored and kept; None if they are not rounded.
        progress: receives the scores, the best step, and the reason for stopping.
        rows: rows of an epoch.
        best: the best weights so far, on rank 0; None before the first score.
        scored: the vectors that the dev score of the best weights was computed on; None if this process has not
            computed it.
    """

    encoder: Encoder
    method: Method
    dev: Dev
    mean: RunningMean | None
    rounded: RoundedWeights | None
    settings: Settings
    device: torch.device
    ranks: Ranks
    reporter: Reporter
    progress: Progress
    rows: int
    best: Weights | None = None
    scored: Watch | None = None

    def score(self, *, still: bool = False) -> float:
        """Compute the dev score, keep the weights if it is the best, and check for early stopping.

        Args:
            still: see `health.diagnose`.

        Raises:
            StoppedError: on all ranks, if a signal stops rank 0 while it computes the score.
        """
        progress, patience = self.progress, self.settings.patience
        watch = Watch(self._vectors)
        phase = self.reporter.phase("scoring" if progress.step else "scoring the start")
        self._train(False)
        mean = self.mean.in_place() if self.mean else nullcontext()
        rounded = self.rounded.in_place() if self.rounded else nullcontext()
        with mean, rounded, phase:  # in this order: the mean is rounded
            score, progress.scoring_seconds = self._of_rank_0(watch)
            progress.dev_scores += 1
            # Of equal scores the earlier one wins, except the start's: with a coarse score, a tie is no reason to
            # discard the training and keep a randomly initialised head.
            ahead_of_start = progress.best_step == 0 < progress.step and score == progress.best_score
            if progress.best_score is None or score > progress.best_score or ahead_of_start:
                progress.best_score, progress.best_step = score, progress.step
                progress.best_sentences = progress.sentences
                self.best = copy_weights(self.encoder, self.method) if self.ranks.first else None
                self.scored = watch
        self._train(True)
        waited = (progress.sentences - progress.best_sentences) / self.rows
        if patience is not None and waited >= patience:
            progress.stopped = f"no better dev score in {patience:g} epoch{'' if patience == 1 else 's'}"
        self._diagnose(watch.health(), score, still)
        return score

    def _of_rank_0(self, watch: Watch) -> tuple[float, float]:
        """The dev score, and the seconds that all dev scores have taken, by its clock."""
        score, started = LOWEST, time.perf_counter()
        try:
            if self.ranks.first:
                score = score_of(self.dev, watch, self.device)
        except StoppedError as stop:
            if stop.whole:
                self.ranks.tell({"signal": stop.number})
            raise
        seconds = self.progress.scoring_seconds + time.perf_counter() - started
        told = self.ranks.tell({"score": score, "seconds": seconds})
        if "signal" in told:
            raise stopped(int(told["signal"]), whole=True)
        return told["score"], told["seconds"]

    def _train(self, training: bool) -> None:
        self.encoder.train(training)
        self.method.train(training)

    def _vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The embedding that will be deployed."""
        return self.method.deploy(self.encoder.embed(ids, mask))

    def restore(self) -> None:
        """Load the weights with the best dev score into encoder and method."""
        if self.best is not None:
            self.encoder.load_state_dict(self.best["encoder"])
            # Not strict: the queue is not part of the saved weights.
            self.method.load_state_dict(self.best["method"], strict=False)
        self._train(False)

    def scored_best(self) -> Watch:
        """The vectors that the dev score of the restored weights was computed on.

        Weights from a checkpoint are scored again.

        Raises:
            TrainingError: if weights from a checkpoint no longer have the dev score by which they were selected.
        """
        if self.scored is None:
            scored, selected = Watch(self._vectors), self.progress.best_score
            with self.reporter.phase("scoring the best weights again"):
                score = score_of(self.dev, scored, self.device)
            if selected is not None and not at_most(abs(score - selected), self.dev.slack):
                raise TrainingError(
                    f"the weights selected with a dev score of {selected:.6f} now score {score:.6f}",
                    "train again with `force`, on one kind of machine and with the same libraries throughout",
                )
            self.scored = scored
        return self.scored

    def _diagnose(self, health: Health | None, score: float, still: bool) -> None:
        """Warn if the student has a problem, once per problem."""
        progress = self.progress
        if health is not None:
            progress.mean_cosine, progress.effective_rank = health.mean_cosine, health.effective_rank
        found = diagnose(
            health if progress.step else None,
            score=score,
            best=score if progress.best_score is None else progress.best_score,
            settings=self.settings,
            watched=self.method.watched(),
            still=still,
        )
        if found and found.kind != progress.wrong:
            self.reporter.warn(f"step {progress.step}: {found.text}")
        progress.wrong, progress.warning = (found.kind, found.text) if found else ("", "")

    def watch_kernels(self) -> None:
        """Warn, once in a run, if a kernel of the method has vanished: long before the student shows it."""
        progress = self.progress
        if not progress.vanished and (found := vanished_kernel(self.method.watched())):
            progress.vanished = found
            self.reporter.warn(f"step {progress.step}: {found}")
