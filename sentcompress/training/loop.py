"""The training loop, the same for every method."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import torch
from torch import Tensor, nn

from sentcompress.encoding.batches import prefetch
from sentcompress.errors import TrainingError
from sentcompress.methods.base import Method
from sentcompress.models.checks import require_sound
from sentcompress.models.encoder import Encoder
from sentcompress.models.int4 import FITTED_TO, RoundedWeights
from sentcompress.models.layer_inputs import LayerInputs
from sentcompress.models.model_files import UNUSABLE
from sentcompress.progress import Reporter
from sentcompress.quantities import told_time
from sentcompress.ranks.alone import ALONE, Ranks
from sentcompress.store.shard import Shard
from sentcompress.training.agreement import Agreement
from sentcompress.training.batches import WHOLE, Batch, BatchPlan, Rows
from sentcompress.training.checkpoint import Checkpoints, State, Weights, saved_if_stopped
from sentcompress.training.dev import Dev
from sentcompress.training.gradient_cache import backward_together, sum_gradients
from sentcompress.training.log import NoLog, StepMeter, TrainingLog
from sentcompress.training.optimizer import RunningMean, make_optimizer, set_dropout
from sentcompress.training.precision import computing_in, training_dtype
from sentcompress.training.run_state import Progress
from sentcompress.training.schedule import Schedule, steps_of
from sentcompress.training.selection import Selection
from sentcompress.training.settings import Settings
from sentcompress.training.views import Views

# Steps between two log entries; on a GPU each of them waits for the device.
LOOK_EVERY = 10
# Steps whose batches are prepared in advance.
PREFETCHED = 3
# Rows per batch when 4-bit weights are fitted to texts.
TOGETHER = 8
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
    mean: RunningMean | None = None
    rounded: RoundedWeights | None = None
    meter: StepMeter = field(default_factory=StepMeter)
    saved_step: int | None = None
    model: nn.ModuleDict = field(init=False)
    optimizer: torch.optim.Optimizer = field(init=False)
    selection: Selection = field(init=False)
    agreement: Agreement = field(init=False)
    log: TrainingLog | NoLog = field(init=False)

    def run(self) -> Progress:
        """Train to the end, resuming from the last checkpoint; afterwards the model has the best weights.

        Raises:
            TrainingError: if the loss or a gradient becomes NaN or infinite. The last good checkpoint is kept.
            SentcompressError: if a weight is NaN or infinite before training.
        """
        settings = self.settings
        require_sound(self.encoder.state_dict(), "the model to be trained", UNUSABLE)
        self.model = nn.ModuleDict({"encoder": self.encoder, "method": self.method}).to(self.device)
        set_dropout(self.encoder, settings.dropout)
        self.optimizer = make_optimizer(self.model, settings)
        if settings.weight_format:
            head = self.method.deployed_head()
            self.rounded = RoundedWeights(self.encoder, *([head.linear] if head else []))
        best = self._resume()
        progress = self.progress
        self.selection = self._make_selection(best)
        self.agreement = Agreement(self.ranks, progress)
        self._choose_dtype()
        schedule = Schedule.of(settings, self.plan, progress)
        sentences = round(len(self.plan.rows) * settings.epochs * schedule.share_of_epochs)
        saved = time.monotonic()
        self.model.train()
        with (
            self.checkpoints,
            closing(TrainingLog(self.log_path, progress.log_bytes) if self.ranks.first else NoLog()) as self.log,
            self.reporter.track("training", total=None if settings.max_minutes else sentences) as bar,
            closing(prefetch(self._batches(schedule, progress.step), PREFETCHED)) as batches,
            saved_if_stopped(self._save_stopped),
            self.agreement.hearing(self.model),
        ):
            bar.advance(progress.sentences)
            self._begin(schedule)
            clock = time.perf_counter()
            while not progress.stopped:
                self.agreement.check()
                schedule.begin_step()
                together, count = next(batches)
                progress.rate = schedule.rate()
                terms, norm = self._step(together, progress.rate)
                self.checkpoints.check()
                progress.step += 1
                progress.sentences += count
                now = time.perf_counter()
                self.agreement.count(sum(batch.tokens for batch in together), now - clock)
                self.meter.add(terms, norm, count, now - clock)
                bar.advance(count)

                self._end_step(schedule, scored=schedule.is_scored())
                if progress.stopped:
                    self._check()
                    self._save()
                elif self.ranks.first and time.monotonic() - saved >= settings.checkpoint_seconds:
                    self._save_once()
                    saved = time.monotonic()
                # Dev scores and checkpoints do not count as training time.
                clock = time.perf_counter()
        progress.tokens, progress.seconds = self.agreement.totals()
        self.selection.restore()
        return progress

    def _make_selection(self, best: Weights | None) -> Selection:
        return Selection(
            encoder=self.encoder,
            method=self.method,
            dev=self.dev,
            mean=self.mean,
            rounded=self.rounded,
            settings=self.settings,
            device=self.device,
            ranks=self.ranks,
            reporter=self.reporter,
            progress=self.progress,
            rows=len(self.plan.rows),
            best=best,
        )

    def _begin(self, schedule: Schedule) -> None:
        """Score the start, or the last step before the run was stopped if that is still to be done."""
        progress = self.progress
        if progress.step == 0:
            # The start is a candidate too: training that makes it worse is undone.
            progress.start_score = self.selection.score()
            self.reporter.note(f"dev score before training: {progress.start_score:.2f} ({self.dev.protocol})")
            self._tell({"dev": progress.start_score})
            if schedule.time_used() >= 1:
                self.reporter.warn(
                    f"scoring the start took {progress.scoring_seconds:.3g} seconds, all of `max_minutes` "
                    f"{self.settings.max_minutes:g}: the student is not trained; allow more time"
                )
        elif progress.unscored:
            self._end_step(schedule, scored=True)

    def _end_step(self, schedule: Schedule, *, scored: bool) -> None:
        """Log a step that is done, with its dev score if it is `scored`, and see whether it was the last one."""
        progress, meter = self.progress, self.meter
        progress.unscored = scored
        if scored or progress.step % LOOK_EVERY == 0:
            self._check()
            self.selection.watch_kernels()
            score = self.selection.score(still=meter.still()) if scored else None
            told = {"loss": meter.loss(), "seconds_left": schedule.seconds_left()}
            measured = {"seconds": round(progress.all_seconds, 1), "dev": score, "best": progress.best_score}
            self._tell({**meter.take(), "lr": progress.rate, **measured}, told)
            progress.last_score = progress.last_score if score is None else score
        progress.unscored = False
        if schedule.is_last():
            progress.stopped = "all steps done" if progress.step == schedule.total else "the time is up"

    def _step(self, batches: Sequence[Batch], rate: float) -> tuple[dict[str, Tensor], Tensor]:
        """Do one optimizer step; returns the terms of its loss, and the gradient norm before clipping."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        rounded = self.rounded.in_place() if self.rounded else nullcontext()
        with self.agreement.before_update(), rounded:
            if len(batches) == self.ranks.count == 1:
                views = self._compute(batches[0], 0)
                terms = self.method.objective(**views)
                torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
            else:
                terms, views = backward_together(
                    batches, self._compute, lambda views: self.method.objective(**views), self.ranks
                )
                sum_gradients(self.encoder, self.method, self.ranks)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip or math.inf)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.mean:
            self.mean.update()
        self.method.update(**{name: tensor.detach() for name, tensor in views.items()})
        return terms, norm

    def _compute(self, batch: Batch, number: int) -> dict[str, Tensor]:
        """The views of batch `number` of a step."""
        self.agreement.check_within_step()  # a step of many batches can take long; it is done again
        # Seeded by the step, so that dropout is the same in a resumed run; ranks differ.
        seed = (self.settings.seed * 1_000_003 + self.progress.step) * self.settings.grad_accum + number
        # For each kind of device that is not there, torch.manual_seed formats a stack trace: half a millisecond a step.
        seed_all = torch.default_generator.manual_seed if self.device.type == "cpu" else torch.manual_seed
        seed_all((seed * self.ranks.count + self.ranks.number) % 2**63)
        with computing_in(self.progress.dtype, self.device, self.encoder):
            views = self.views(batch)
        return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in views.items()}

    def _batches(self, schedule: Schedule, first: int) -> Iterator[tuple[list[Batch], int]]:
        """This rank's share of the batches of all steps from `first` on, on the device, and the rows of all ranks."""
        done, total, together = 0, schedule.total, self.settings.grad_accum
        for epoch in itertools.count():
            if done >= total:
                return
            steps = steps_of(self.plan, epoch, together)
            if done + steps > first:
                rows = self.plan.epoch(epoch)
                for step in range(max(0, first - done), min(steps, total - done)):
                    mine = rows[step * together : (step + 1) * together]
                    share = [self.collate(batch, self.ranks.share).to(self.device) for batch in mine]
                    yield share, sum(map(len, mine))
            done += steps

    def _check(self) -> None:
        """Raise TrainingError if the loss or a gradient was NaN or infinite, before weights are scored."""
        if self.meter.finite():
            return
        step, best = self.progress.step, self.progress.best_step
        kept = f"the best weights so far (step {best}) are kept"
        where = f"step {step - self.meter.steps + 1} to {step}"
        raise TrainingError(
            f"training diverged: the loss or a gradient became NaN or infinite ({where}); {kept}",
            "try a lower `lr`" + ("" if self.progress.dtype == "float32" else ", or `dtype` float32"),
        )

    def _tell(
        self, values: Mapping[str, float | None], told: Mapping[str, float | None] = MappingProxyType({})
    ) -> None:
        """Report and log values; `told` and the name of the dev score are reported only."""
        progress = self.progress
        epoch = round(progress.sentences / len(self.plan.rows), 4)
        spread = {"mean_cosine": progress.mean_cosine, "effective_rank": progress.effective_rank}
        shown = {"step": progress.step, "epoch": epoch, **values, **spread, **self.method.watched()}
        self.reporter.metrics({**told, "measure": self.dev.measure, **shown})
        self.log.write({key: value for key, value in shown.items() if value is not None})

    def _choose_dtype(self) -> None:
        """Choose the number format once per run; a resumed run keeps it."""
        if not self.progress.dtype:
            chosen = self._timed_dtype() if self.ranks.first else ("", "")
            self.progress.dtype, self.progress.dtype_reason = self.ranks.tell(chosen)
        self.reporter.note(f"training in {self.progress.dtype} ({self.progress.dtype_reason})")

    def _timed_dtype(self) -> tuple[str, str]:
        batch = self.collate(self.plan.epoch(0)[0][:TRIAL_ROWS], WHOLE).to(self.device)
        self.model.train()
        with self.reporter.phase("choosing the number format"):
            chosen = training_dtype(
                self.settings.dtype, self.device, self.encoder, lambda: next(iter(self.views(batch).values()))
            )
        self.model.zero_grad(set_to_none=True)
        return chosen

    def _save_stopped(self) -> int | None:
        """Save the state that all ranks stopped in; see `_save_once`.

        All wait until it is on disk: a launcher ends the others soon after the first.
        """
        step = self._save_once()
        self.checkpoints.wait()
        self.ranks.meet()
        return step

    def _save_once(self) -> int | None:
        """Save the state if that was not done yet; returns its step, None if there is nothing worth saving."""
        step = self.progress.step
        if not step or not self.meter.finite():
            return None
        if self.saved_step != step:
            self._save()
        return step

    def _save(self) -> None:
        if not self.ranks.first:
            return
        self.progress.log_bytes = self.log.size()
        tokens, seconds = self.agreement.totals()
        state = {
            "model": {name: module.state_dict() for name, module in self.model.items()},
            "optimizer": self.optimizer.state_dict(),
            "progress": asdict(replace(self.progress, tokens=tokens, seconds=seconds)),
            "meter": self.meter.state(),
            **({"mean": self.mean.state()} if self.mean else {}),
        }
        self.checkpoints.save(state, self.selection.best, self.progress.best_step, self.progress.step)
        self.saved_step = self.progress.step

    def _resume(self) -> Weights | None:
        """Continue from the last checkpoint, if there is one. All ranks then have the weights of rank 0.

        Returns:
            The best weights so far; None without a checkpoint, and on all ranks but the first.
        """
        state, best = (self.checkpoints.load() if self.ranks.first else None) or (None, None)
        self.ranks.meet()  # rank 0 may have removed what cannot be used
        if not self.ranks.first:
            state = self.checkpoints.read()
        if state is not None:
            self._restore(state)
        elif self.rounded and self.ranks.first:
            self._fit_rounded(self.rounded)
        self.ranks.copy([*self.model.parameters(), *self.model.buffers()])
        if self.settings.ema:
            self.mean = RunningMean(self.model.parameters(), self.settings.ema)
            if state is not None:
                self.mean.restore(state["mean"])
        return best

    def _fit_rounded(self, rounded: RoundedWeights) -> None:
        """Change the weights so that they lose less by rounding, on texts of the training data."""
        rows = self.plan.sample(FITTED_TO)
        self.encoder.eval()  # without dropout
        inputs = LayerInputs(rounded.layers)
        with (
            self.reporter.track("rounding weights to 4 bits", total=len(rows)) as task,
            inputs.watching(),
            torch.no_grad(),
        ):
            for start in range(0, len(rows), TOGETHER):
                batch = self.collate(rows[start : start + TOGETHER], WHOLE).to(self.device)
                self.method.deploy(self.encoder.embed(batch.input_ids, batch.attention_mask))
                inputs.add(batch.attention_mask.bool())
                task.advance(len(rows[start : start + TOGETHER]))
        rounded.fit(inputs)

    def _restore(self, state: State) -> None:
        for name, module in self.model.items():
            module.load_state_dict(state["model"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])
        self.meter.restore(state["meter"], self.device)
        used = told_time(self.progress.all_seconds)
        self.reporter.step(f"resuming after step {self.progress.step}, with {used} of training done")
