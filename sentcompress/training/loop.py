"""The training loop, the same for every method."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn

from sentcompress.encoding.batches import prefetch
from sentcompress.errors import TrainingError
from sentcompress.methods.base import Method
from sentcompress.models.checks import require_sound
from sentcompress.models.encoder import Encoder
from sentcompress.progress import Reporter
from sentcompress.ranks.alone import ALONE, Ranks
from sentcompress.signals import check
from sentcompress.store.shard import Shard
from sentcompress.training.batches import WHOLE, Batch, BatchPlan, Rows
from sentcompress.training.checkpoint import Checkpoints, State, Weights, copy_weights, saved_if_stopped
from sentcompress.training.dev import LOWEST, Dev, score_of
from sentcompress.training.gradient_cache import backward_together, sum_gradients
from sentcompress.training.health import Health, Watch, diagnose, vanished_kernel
from sentcompress.training.log import NoLog, StepMeter, TrainingLog
from sentcompress.training.optimizer import RunningMean, make_optimizer, set_dropout
from sentcompress.training.precision import computing_in, training_dtype
from sentcompress.training.run_state import Progress
from sentcompress.training.settings import Settings, factor, warmup_steps
from sentcompress.training.views import Views

# Steps between two log entries; on a GPU each of them waits for the device.
LOOK_EVERY = 10
# Dev scores of a run that is limited by time.
DEV_SCORES = 4
# Steps whose batches are prepared in advance.
PREFETCHED = 3
# Rows of the batch for timing the number formats, on one thread.
TRIAL_ROWS = 16


@dataclass
class Training:
    """Everything that a run of the loop needs.

    Attributes:
        encoder, method: the modules to train.
        plan: the rows of each batch.
        collate: from row numbers to the tensors of a rank's share of them on the CPU; runs in another thread.
        views: from a batch on the device to the method's views, by name.
        dev: the score for checkpoint selection.
        ranks: the processes that share every batch. Rank 0 computes dev scores, logs and writes checkpoints.
    """

    encoder: Encoder
    method: Method
    plan: BatchPlan
    collate: Callable[[Rows, Shard], Batch]
    views: Views
    dev: Dev
    settings: Settings
    device: torch.device
    checkpoints: Checkpoints
    log_path: Path
    reporter: Reporter
    ranks: Ranks = ALONE
    progress: Progress = field(default_factory=Progress)
    best: Weights | None = None
    mean: RunningMean | None = None
    meter: StepMeter = field(default_factory=StepMeter)
    eval_every: int | None = None
    saved_step: int | None = None

    def run(self) -> Progress:
        """Train to the end, resuming from the last checkpoint; afterwards the model has the best weights.

        Raises:
            TrainingError: if the loss or a gradient becomes NaN or infinite. The last good checkpoint is kept.
            SentcompressError: if a weight is NaN or infinite before training.
        """
        settings, progress = self.settings, self.progress
        require_sound(self.encoder.state_dict(), "the model to be trained", "is the model damaged?")
        model = nn.ModuleDict({"encoder": self.encoder, "method": self.method}).to(self.device)
        set_dropout(self.encoder, settings.dropout)
        optimizer = make_optimizer(model, settings)
        if settings.ema:
            self.mean = RunningMean(model.parameters(), settings.ema)
        self._resume(model, optimizer)
        self._choose_dtype(model)
        epoch_steps = [-(-self.plan.steps(epoch) // settings.grad_accum) for epoch in range(settings.epochs)]
        total = min(sum(epoch_steps), settings.max_steps or sum(epoch_steps))
        warmup = warmup_steps(settings, total, sum(epoch_steps) / settings.epochs)
        self.eval_every = settings.eval_every or (None if settings.max_minutes else math.ceil(epoch_steps[0] / 4))
        sentences = round(len(self.plan.rows) * settings.epochs * total / sum(epoch_steps))
        meter = self.meter
        saved = time.monotonic()
        model.train()
        with (
            self.checkpoints,
            closing(TrainingLog(self.log_path, progress.log_bytes) if self.ranks.first else NoLog()) as log,
            self.reporter.track("training", total=None if settings.max_minutes else sentences) as bar,
            closing(prefetch(self._batches(epoch_steps, progress.step, total), PREFETCHED)) as batches,
            saved_if_stopped(partial(self._save_once, model, optimizer, log)),
        ):
            bar.advance(progress.sentences)
            if progress.step == 0:
                # The start is a candidate too: training that makes it worse is undone.
                progress.start_score = self._evaluate(model)
                self.reporter.note(f"dev score before training: {progress.start_score:.2f} ({self.dev.protocol})")
                self._tell({"dev": progress.start_score}, log)
            elif progress.unscored:
                self._end_step(model, log, total, evaluate=True)
            clock = time.perf_counter()
            while not progress.stopped:
                check()
                together, count = next(batches)
                progress.rate = settings.lr * self._factor(total, warmup)
                used = self._time_used()
                terms, norm = self._step(together, model, optimizer, progress.rate)
                self.checkpoints.check()
                progress.step += 1
                progress.sentences += count
                now = time.perf_counter()
                save = self._count(together, now - clock, time.monotonic() - saved)
                meter.add(terms, norm, count, now - clock)
                bar.advance(count)

                self._end_step(model, log, total, evaluate=self._is_last(total) or self._is_due(used))
                if progress.stopped or save:
                    self._check(meter)
                    self._save(model, optimizer, log)
                    saved = time.monotonic()
                # Dev scores and checkpoints do not count as training time.
                clock = time.perf_counter()
        self.restore_best()
        return progress

    def _count(self, batches: Sequence[Batch], seconds: float, unsaved: float) -> bool:
        """Count the tokens of all ranks, and the seconds by the clock of rank 0, so that all do the same in a step.

        Returns whether a checkpoint is due, `unsaved` seconds after the last one.
        """
        own = (sum(batch.tokens for batch in batches), self.progress.seconds + seconds, unsaved)
        by_rank = self.ranks.numbers(own)
        self.progress.tokens += int(sum(tokens for tokens, _, _ in by_rank))
        _, self.progress.seconds, unsaved = by_rank[0]
        return unsaved >= self.settings.checkpoint_seconds

    def _save_once(
        self, model: nn.ModuleDict, optimizer: torch.optim.Optimizer, log: TrainingLog | NoLog
    ) -> int | None:
        """Save the state if that was not done yet; returns its step, None if there is nothing worth saving."""
        step = self.progress.step
        if not step or not self.meter.finite():
            return None
        if self.saved_step != step:
            self._save(model, optimizer, log)
        return step

    def _end_step(self, model: nn.ModuleDict, log: TrainingLog | NoLog, total: int, *, evaluate: bool) -> None:
        """Log a step that is done, with its dev score if `evaluate`, and see whether it was the last one."""
        progress, meter = self.progress, self.meter
        progress.unscored = evaluate
        if evaluate or progress.step % LOOK_EVERY == 0:
            self._check(meter)
            self._watch_kernels()
            score = self._evaluate(model, still=meter.still()) if evaluate else None
            told = {"loss": meter.loss(), "seconds_left": self._seconds_left()}
            self._tell({**meter.take(), "lr": progress.rate, "dev": score, "best": progress.best_score}, log, told)
            progress.last_score = progress.last_score if score is None else score
        progress.unscored = False
        if self._is_last(total):
            progress.stopped = "all steps done" if progress.step == total else "the time is up"

    def _is_last(self, total: int) -> bool:
        """Whether no step follows the one just done, unless its dev score ends the training earlier."""
        return self.progress.step == total or self._time_used() >= 1

    def _time_used(self) -> float:
        """The share of `max_minutes` that training and dev scores have taken, also before it was resumed."""
        limit = self.settings.max_minutes
        return (self.progress.seconds + self.progress.scoring_seconds) / (60 * limit) if limit else 0.0

    def _seconds_left(self) -> float | None:
        """Of `max_minutes`; None without this limit."""
        limit = self.settings.max_minutes
        return 60 * limit * max(0.0, 1 - self._time_used()) if limit else None

    def _factor(self, total: int, warmup: int) -> float:
        """The share of the peak learning rate; with a time limit, it has fallen to zero when the time is up."""
        step, kind = self.progress.step, self.settings.schedule
        by_step = factor(step, total=total, warmup=warmup, kind=kind)
        by_time = factor(min(self._time_used(), 1.0), total=1, warmup=0, kind=kind)
        return min(by_step, by_time)

    def _is_due(self, used_before: float) -> bool:
        """Whether the step just done is followed by a dev score: every `eval_every` steps, or each quarter of the time.

        Args:
            used_before: the share of the time that had been used before this step.
        """
        if self.eval_every is not None:
            return self.progress.step % self.eval_every == 0
        return int(DEV_SCORES * self._time_used()) > int(DEV_SCORES * used_before)

    def _step(
        self, batches: Sequence[Batch], model: nn.ModuleDict, optimizer: torch.optim.Optimizer, rate: float
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Do one optimizer step; returns the terms of its loss, and the gradient norm before clipping."""
        for group in optimizer.param_groups:
            group["lr"] = rate
        if len(batches) == self.ranks.count == 1:
            views = self._compute(batches[0], 0)
            terms = self.method.objective(**views)
            torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        else:
            terms, views = backward_together(
                batches, self._compute, lambda views: self.method.objective(**views), self.ranks
            )
            sum_gradients(self.encoder, self.method, self.ranks)
        norm = nn.utils.clip_grad_norm_(model.parameters(), self.settings.clip or math.inf)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if self.mean:
            self.mean.update()
        self.method.update(**{name: tensor.detach() for name, tensor in views.items()})
        return terms, norm

    def _compute(self, batch: Batch, number: int) -> dict[str, Tensor]:
        """The views of batch `number` of a step."""
        check()  # a step of many batches can take long; one that is not finished is done again
        # Seeded by the step, so that dropout is the same in a resumed run; ranks differ.
        seed = (self.settings.seed * 1_000_003 + self.progress.step) * self.settings.grad_accum + number
        torch.manual_seed((seed * self.ranks.count + self.ranks.number) % 2**63)
        with computing_in(self.progress.dtype, self.device, self.encoder):
            views = self.views(batch)
        return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in views.items()}

    def vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The embedding that will be deployed, for dev scores."""
        return self.method.deploy(self.encoder.embed(ids, mask))

    def restore_best(self) -> None:
        """Load the weights with the best dev score into encoder and method."""
        if self.best is not None:
            self.encoder.load_state_dict(self.best["encoder"])
            # Not strict: the queue is not part of the saved weights.
            self.method.load_state_dict(self.best["method"], strict=False)
        self.encoder.eval()
        self.method.eval()

    def _batches(self, epoch_steps: list[int], first: int, total: int) -> Iterator[tuple[list[Batch], int]]:
        """This rank's share of the batches of steps `first` to `total`, on the device, and the rows of all ranks."""
        done, together = 0, self.settings.grad_accum
        for epoch, steps in enumerate(epoch_steps):
            if done + steps > first and done < total:
                rows = self.plan.epoch(epoch)
                for step in range(max(0, first - done), min(steps, total - done)):
                    mine = rows[step * together : (step + 1) * together]
                    share = [self.collate(batch, self.ranks.share).to(self.device) for batch in mine]
                    yield share, sum(map(len, mine))
            done += steps

    def _check(self, meter: StepMeter) -> None:
        """Raise TrainingError if the loss or a gradient was NaN or infinite, before weights are scored or saved."""
        if meter.finite():
            return
        step, best = self.progress.step, self.progress.best_step
        kept = f"the best weights so far (step {best}) are kept"
        where = f"step {step - meter.steps + 1} to {step}"
        raise TrainingError(
            f"the loss or a gradient became NaN or infinite ({where}); {kept}",
            "try a lower `lr`" + ("" if self.progress.dtype == "float32" else ", or `dtype` float32"),
        )

    def _evaluate(self, model: nn.ModuleDict, *, still: bool = False) -> float:
        """Compute the dev score, keep the weights if it is the best, and check for early stopping."""
        progress, patience = self.progress, self.settings.patience
        model.eval()
        watch = Watch(self.vectors)
        started = time.perf_counter()
        phase = self.reporter.phase("scoring" if progress.step else "scoring the start")
        with self.mean.in_place() if self.mean else nullcontext(), phase:
            score = score_of(self.dev, watch, self.device) if self.ranks.first else LOWEST
            taken = progress.scoring_seconds + time.perf_counter() - started
            score, progress.scoring_seconds = self.ranks.tell((score, taken))
            # Of equal scores the earlier one wins, except the start's: with a coarse score, a tie is no reason to
            # discard the training and keep a randomly initialised head.
            ahead_of_start = progress.best_step == 0 < progress.step and score == progress.best_score
            if progress.best_score is None or score > progress.best_score or ahead_of_start:
                progress.best_score, progress.best_step = score, progress.step
                progress.best_sentences = progress.sentences
                self.best = copy_weights(self.encoder, self.method) if self.ranks.first else None
        model.train()
        waited = (progress.sentences - progress.best_sentences) / len(self.plan.rows)
        if patience is not None and waited >= patience:
            progress.stopped = f"no better dev score in {patience:g} epochs"
        self._diagnose(watch.health(), score, still)
        return score

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

    def _watch_kernels(self) -> None:
        """Warn, once in a run, if a kernel of the method has vanished: long before the student shows it."""
        progress = self.progress
        if not progress.vanished and (found := vanished_kernel(self.method.watched())):
            progress.vanished = found
            self.reporter.warn(f"step {progress.step}: {found}")

    def _tell(
        self,
        values: Mapping[str, float | None],
        log: TrainingLog | NoLog,
        told: Mapping[str, float | None] = MappingProxyType({}),
    ) -> None:
        """Report and log values; `told` is reported only."""
        progress = self.progress
        epoch = round(progress.sentences / len(self.plan.rows), 4)
        spread = {"mean_cosine": progress.mean_cosine, "effective_rank": progress.effective_rank}
        shown = {"step": progress.step, "epoch": epoch, **values, **spread, **self.method.watched()}
        self.reporter.metrics({**told, **shown})
        log.write({key: value for key, value in shown.items() if value is not None})

    def _choose_dtype(self, model: nn.ModuleDict) -> None:
        """Choose the number format once per run; a resumed run keeps it."""
        if not self.progress.dtype:
            chosen = self._timed_dtype(model) if self.ranks.first else ("", "")
            self.progress.dtype, self.progress.dtype_reason = self.ranks.tell(chosen)
        self.reporter.note(f"training in {self.progress.dtype} ({self.progress.dtype_reason})")

    def _timed_dtype(self, model: nn.ModuleDict) -> tuple[str, str]:
        batch = self.collate(self.plan.epoch(0)[0][:TRIAL_ROWS], WHOLE).to(self.device)
        model.train()
        with self.reporter.phase("choosing the number format"):
            chosen = training_dtype(
                self.settings.dtype, self.device, self.encoder, lambda: next(iter(self.views(batch).values()))
            )
        model.zero_grad(set_to_none=True)
        return chosen

    def _save(self, model: nn.ModuleDict, optimizer: torch.optim.Optimizer, log: TrainingLog | NoLog) -> None:
        if not self.ranks.first:
            return
        self.progress.log_bytes = log.size()
        state = {
            "model": {name: module.state_dict() for name, module in model.items()},
            "optimizer": optimizer.state_dict(),
            "progress": dict(vars(self.progress)),
            "meter": self.meter.state(),
            **({"mean": self.mean.state()} if self.mean else {}),
        }
        self.checkpoints.save(state, self.best, self.progress.best_step, self.progress.step)
        self.saved_step = self.progress.step

    def _resume(self, model: nn.ModuleDict, optimizer: torch.optim.Optimizer) -> None:
        """Continue from the last checkpoint, if there is one. All ranks then have the weights of rank 0."""
        state, self.best = (self.checkpoints.load() if self.ranks.first else None) or (None, None)
        self.ranks.meet()  # rank 0 may have removed what cannot be used
        if not self.ranks.first:
            state = self.checkpoints.read()
        if state is not None:
            self._restore(state, model, optimizer)
        self.ranks.copy([*model.parameters(), *model.buffers()])

    def _restore(self, state: State, model: nn.ModuleDict, optimizer: torch.optim.Optimizer) -> None:
        for name, module in model.items():
            module.load_state_dict(state["model"][name])
        optimizer.load_state_dict(state["optimizer"])
        vars(self.progress).update(state["progress"])
        self.meter.restore(state["meter"], self.device)
        if self.mean:
            self.mean.restore(state["mean"])
        self.reporter.note(f"resuming after step {self.progress.step}")
