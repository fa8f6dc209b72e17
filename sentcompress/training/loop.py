"""The training loop: one for every method."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sentcompress.errors import TrainingError
from sentcompress.methods.base import Method
from sentcompress.models.encoder import Encoder
from sentcompress.progress import Reporter
from sentcompress.training.batches import Batch, Plan, Rows, ahead
from sentcompress.training.checkpoint import Checkpoints, Weights
from sentcompress.training.dev import Dev
from sentcompress.training.log import TrainingLog
from sentcompress.training.optimizer import make_optimizer, set_dropout
from sentcompress.training.precision import autocast, choose_dtype
from sentcompress.training.schedule import factor, warmup_steps
from sentcompress.training.settings import Settings

# Steps between two looks at the numbers; on a GPU each look waits for the device.
LOOK_EVERY = 10
Views = Callable[[Batch], dict[str, Tensor]]


@dataclass
class Progress:
    """Where training stands: with the weights and the optimizer, all that a checkpoint holds."""

    step: int = 0
    sentences: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best_score: float | None = None
    best_step: int | None = None
    best_sentences: int = 0
    dtype: str = ""
    dtype_reason: str = ""
    stopped: str = ""
    log_bytes: int = 0


@dataclass
class Training:
    """Everything that a run of the loop needs.

    Attributes:
        encoder, method: what is trained.
        plan: the rows of each batch.
        collate: from row numbers to tensors, on the CPU; runs in a thread of its own.
        views: from a batch on the device to the tensors that the method's objective takes, by name.
        dev: chooses the best checkpoint.
    """

    encoder: Encoder
    method: Method
    plan: Plan
    collate: Callable[[Rows], Batch]
    views: Views
    dev: Dev
    settings: Settings
    device: torch.device
    checkpoints: Checkpoints
    log_path: Path
    reporter: Reporter
    progress: Progress = field(default_factory=Progress)
    best: Weights | None = None

    def run(self) -> Progress:
        """Train to the end, or go on from the last checkpoint; the best weights are in the model afterwards.

        Raises:
            TrainingError: if the loss or a gradient is no longer a number. The last good checkpoint stays.
        """
        settings, method, progress = self.settings, self.method, self.progress
        model = nn.ModuleDict({"encoder": self.encoder, "method": method}).to(self.device)
        set_dropout(self.encoder, settings.dropout)
        optimizer = make_optimizer(model, settings)
        self._resume(model, optimizer)
        self._choose_dtype(model)
        epoch_steps = [self.plan.steps(epoch) for epoch in range(settings.epochs)]
        total = min(sum(epoch_steps), settings.max_steps or sum(epoch_steps))
        warmup = warmup_steps(settings, total, sum(epoch_steps) / settings.epochs)
        eval_every = settings.eval_every or max(1, math.ceil(epoch_steps[0] / 4))
        log = TrainingLog(self.log_path, progress.log_bytes)
        window = _Window()
        saved = time.monotonic()
        model.train()
        with (
            self.reporter.track("training", total=total, unit="steps") as bar,
            ahead(lambda: self._batches(epoch_steps, progress.step, total)) as batches,
        ):
            bar.advance(progress.step)
            clock = time.perf_counter()
            for batch in () if progress.stopped else batches:
                rate = settings.lr * factor(progress.step, total=total, warmup=warmup, kind=settings.schedule)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                # Seeded by the step: dropout is the same after a resume, whatever ran in between.
                torch.manual_seed(settings.seed * 1_000_003 + progress.step)
                batch = batch.to(self.device)
                with autocast(self.device, progress.dtype):
                    views = self.views(batch)
                views = {name: tensor.float() for name, tensor in views.items()}
                terms = method.objective(**views)
                loss = torch.stack(list(terms.values())).sum()
                loss.backward()  # type: ignore[no-untyped-call]
                norm = nn.utils.clip_grad_norm_(model.parameters(), settings.clip or math.inf)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                method.update(**{name: tensor.detach() for name, tensor in views.items()})
                progress.step += 1
                progress.sentences += len(batch)
                progress.tokens += batch.input_ids.numel()
                window.add(terms, loss + norm, len(batch))
                progress.seconds += time.perf_counter() - clock
                bar.advance()

                last = progress.step == total
                look = last or progress.step % LOOK_EVERY == 0
                score = None
                if look or progress.step % eval_every == 0:
                    self._check(window)
                if last or progress.step % eval_every == 0:
                    score = self._evaluate(model, epoch_steps[0])
                if look or score is not None:
                    epoch = progress.sentences / len(self.plan.rows)
                    values = {"step": progress.step, "epoch": epoch, **window.take(), "lr": rate, "dev": score}
                    self._tell({**values, **method.watched()}, log)
                if last:
                    progress.stopped = progress.stopped or "all steps done"
                if progress.stopped or time.monotonic() - saved >= settings.checkpoint_seconds:
                    self._check(window)
                    self._save(model, optimizer, log)
                    saved = time.monotonic()
                if progress.stopped:
                    break
                # Neither dev nor checkpoints count as training time.
                clock = time.perf_counter()
        log.close()
        self.restore_best()
        return progress

    def vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        """What dev looks at: the deployed embedding, or the prediction of the target."""
        pooled = self.encoder.embed(ids, mask)
        return self.method.deploy(pooled) if self.dev.deployed else self.method.predict(pooled)

    def _batches(self, epoch_steps: list[int], first: int, total: int) -> Iterator[Batch]:
        """The batches of steps `first` to `total`, across epochs."""
        done = 0
        for epoch, steps in enumerate(epoch_steps):
            if done + steps > first and done < total:
                for rows in self.plan.epoch(epoch)[max(0, first - done) : total - done]:
                    yield self.collate(rows)
            done += steps

    def _check(self, window: _Window) -> None:
        """Stop before weights that are no longer numbers are scored or saved."""
        if window.finite():
            return
        step, best = self.progress.step, self.progress.best_step
        kept = f"the best weights so far (step {best}) are kept" if best else "no dev score had been taken yet"
        raise TrainingError(
            f"the loss or a gradient became infinite or not a number in step {max(1, step - LOOK_EVERY)} to {step}; {kept}",
            "try a lower --lr" + ("" if self.progress.dtype == "float32" else " or --dtype float32"),
        )

    def _evaluate(self, model: nn.ModuleDict, steps_per_epoch: int) -> float:
        progress = self.progress
        model.eval()
        score = self.dev.score(self.vectors, self.device)
        model.train()
        if progress.best_score is None or score > progress.best_score:
            progress.best_score, progress.best_step, progress.best_sentences = score, progress.step, progress.sentences
            self.best = _weights(model)
        waited = (progress.sentences - progress.best_sentences) / len(self.plan.rows)
        if self.settings.patience is not None and waited >= self.settings.patience:
            progress.stopped = f"no better dev score in {self.settings.patience:g} epochs"
        return score

    def _tell(self, values: Mapping[str, float | int | str | None], log: TrainingLog) -> None:
        speed = self.progress.sentences / max(self.progress.seconds, 1e-9)
        shown = {**values, "sentences_per_second": round(speed, 1), "best": self.progress.best_score}
        self.reporter.metrics(shown)
        log.write({key: value for key, value in shown.items() if value is not None})

    def _choose_dtype(self, model: nn.ModuleDict) -> None:
        """Once for a whole run: a resumed one keeps the answer."""
        if not self.progress.dtype:
            batch = self.collate(self.plan.epoch(0)[0]).to(self.device)
            model.train()
            answer = choose_dtype(self.settings.dtype, self.device, lambda: next(iter(self.views(batch).values())))
            self.progress.dtype, self.progress.dtype_reason = answer
            model.zero_grad(set_to_none=True)
        self.reporter.note(f"training in {self.progress.dtype} ({self.progress.dtype_reason})")

    def _save(self, model: nn.ModuleDict, optimizer: torch.optim.Optimizer, log: TrainingLog) -> None:
        self.progress.log_bytes = log.size()
        state: dict[str, Any] = {
            "model": {name: module.state_dict() for name, module in model.items()},
            "optimizer": optimizer.state_dict(),
            "progress": dict(vars(self.progress)),
        }
        self.checkpoints.save(state, self.best, self.progress.best_step)

    def _resume(self, model: nn.ModuleDict, optimizer: torch.optim.Optimizer) -> None:
        found = self.checkpoints.load()
        if found is None:
            return
        state, self.best = found
        for name, module in model.items():
            module.load_state_dict(state["model"][name])
        optimizer.load_state_dict(state["optimizer"])
        vars(self.progress).update(state["progress"])
        self.reporter.note(f"going on after step {self.progress.step}")

    def restore_best(self) -> None:
        """Put the weights with the best dev score back into encoder and method."""
        if self.best is not None:
            self.encoder.load_state_dict(self.best["encoder"])
            # The queue, which is no part of a student, stays as it is.
            self.method.load_state_dict(self.best["method"], strict=False)
        self.encoder.eval()
        self.method.eval()


class _Window:
    """Loss terms since the last look, kept on the device until then."""

    def __init__(self) -> None:
        self._terms: dict[str, Tensor] = {}
        self._steps = 0
        self._health: Tensor | None = None

    def add(self, terms: Mapping[str, Tensor], health: Tensor, sentences: int) -> None:
        """Count the terms of a step; `health` is a number that is finite as long as all is well."""
        for name, term in terms.items():
            self._terms[name] = self._terms.get(name, torch.zeros_like(term)) + term.detach()
        self._health = health.detach() if self._health is None else self._health + health.detach()
        self._steps += 1

    def finite(self) -> bool:
        return self._health is None or math.isfinite(float(self._health))

    def take(self) -> dict[str, float]:
        """The means since the last call."""
        means = {name: float(total) / self._steps for name, total in self._terms.items()} if self._steps else {}
        self._terms, self._steps, self._health = {}, 0, None
        return means


def _weights(model: nn.ModuleDict) -> Weights:
    """A copy of what a student is made of: the encoder's tensors and the method's parameters, not its queue."""
    encoder, method = model["encoder"], model["method"]
    return {
        "encoder": {name: tensor.detach().cpu().clone() for name, tensor in encoder.state_dict().items()},
        "method": {name: tensor.detach().cpu().clone() for name, tensor in method.named_parameters()},
    }
