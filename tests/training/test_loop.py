"""The loop with batches that are written down: joined batches, what a method sees when, and runs that are cut off."""

from __future__ import annotations

import json
import math
import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from distilling import TIMINGS
from static_encoder import make_static_encoder
from tiny_models import tiny_transformer
from torch import Tensor

from benchmarks.host_waits import HostWaits
from sentcompress import signals
from sentcompress.commands.training import TrainingOptions
from sentcompress.errors import SentcompressError, TrainingError
from sentcompress.methods.base import Method, Shapes
from sentcompress.methods.ckd import CKD
from sentcompress.methods.crd import CRD
from sentcompress.methods.ibkd import IBKD, IBKDFinetune
from sentcompress.methods.mse import MSE
from sentcompress.methods.simcse import SimCSE
from sentcompress.methods.simtde import SimTDE
from sentcompress.models import int4, weight_formats
from sentcompress.models.encoder import Encoder
from sentcompress.models.text_settings import TextSettings
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.progress import SILENT
from sentcompress.store import Request, WorkDirectory
from sentcompress.store.shard import Shard
from sentcompress.training import agreement, loop
from sentcompress.training.batches import WHOLE, Batch
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.dev import LOWEST
from sentcompress.training.loop import Training
from sentcompress.training.settings import Settings
from sentcompress.training.views import DistillationViews, TeacherInLoop, TripletViews

CPU = torch.device("cpu")
WIDTH, TEACHER = 16, 8
# 96 sentences of 3 to 9 tokens, and the teacher's vectors of them.
ROWS = [[5 + (7 * row + place * place) % 24 for place in range(3 + (5 * row) % 7)] for row in range(96)]
TARGETS = torch.randn(96, TEACHER, generator=torch.Generator().manual_seed(0))
# Rows 0 to 31 as anchors; their positives, and two hard negatives each, are the rows after those.
TRIPLETS = np.stack([np.arange(32), np.arange(32, 64), np.arange(64, 96), np.arange(95, 63, -1)], axis=1)


@dataclass(frozen=True)
class Written:
    """A plan that is the same in every epoch."""

    batches: Sequence[Sequence[int]]

    @property
    def rows(self) -> Sequence[int]:
        return [row for batch in self.batches for row in batch]

    def epoch(self, number: int) -> list[np.ndarray]:
        return [np.array(batch) for batch in self.batches]

    def sample(self, count: int) -> np.ndarray:
        return np.array(self.rows[:count])

    def steps(self, number: int) -> int:
        return len(self.batches)


class Rising:
    """A dev score that always rises: the last weights are the best ones."""

    measure, protocol, slack = "times asked", "how often it was asked", 0.05
    asked = 0

    def score(self, vectors: object, device: torch.device) -> float:
        self.asked += 1
        return float(self.asked)


def make_encoder(seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    transformer = tiny_transformer("bert")
    for parameter in transformer.parameters():
        if parameter.dim() == 2:  # larger than usual, so that random vectors of different sentences differ
            torch.nn.init.normal_(parameter, std=0.3)
    return TransformerEncoder(transformer, None, text=TextSettings(max_length=40))


def padded(rows: np.ndarray) -> tuple[Tensor, Tensor]:
    longest = max(len(ROWS[row]) for row in rows)
    ids = torch.tensor([[*ROWS[row], *[0] * (longest - len(ROWS[row]))] for row in rows])
    return ids, (ids != 0).long()


def sentences(rows: np.ndarray, share: Shard = WHOLE) -> Batch:
    """The batch that a single process has."""
    return Batch.of(*padded(rows), {"teacher": TARGETS[rows]}, len(rows))


def triplets(rows: np.ndarray, share: Shard = WHOLE) -> Batch:
    """With a sentence of its own beside each triplet."""
    mine = TRIPLETS[rows]
    texts = padded(np.concatenate([mine[:, 0], mine[:, 1], mine[:, 2:].reshape(-1)]))
    return Batch.of(*texts, {}, len(rows), sentences(rows + 40))


def make_method(kind: type[Method], **options: Any) -> Method:
    torch.manual_seed(1)
    return kind(Shapes(WIDTH, TEACHER, hidden=WIDTH, teacher_hidden=WIDTH, hard_negatives=2), options)


def make_training(
    folder: Path,
    method: Method,
    batches: Sequence[Sequence[int]],
    encoder: Encoder | None = None,
    *,
    background: bool = False,
    **numbers: Any,
) -> Training:
    """A run over these batches: in float32, all steps with one learning rate, without dropout.

    Args:
        background: whether checkpoints are written in a thread.
    """
    plain = {"lr": 1e-2, "epochs": 1, "schedule": "constant", "warmup_steps": 0, "clip": 0.0, "dropout": 0.0}
    settings = Settings.of(method.recipe, TrainingOptions(**{**plain, "dtype": "float32", "eval_every": 1, **numbers}))
    encoder = make_encoder() if encoder is None else encoder
    if "triplets" in method.needs:
        views, collate = TripletViews(encoder, method.needs), triplets
    else:
        teacher = TeacherInLoop(make_encoder(seed=2)).to(CPU)
        views, collate = DistillationViews(encoder, method.needs, teacher=teacher), sentences
    folder.mkdir(parents=True, exist_ok=True)
    with WorkDirectory(folder).build(Request("students", "one", "distill", {})) as build:
        log, checkpoints = build.path / "log.jsonl", Checkpoints(build, "state", background=background)
        log.touch()  # a build of nothing would be dropped, and not gone on with
    return Training(
        encoder, method, Written(batches), collate, views, Rising(), settings, CPU, checkpoints, log, SILENT
    )


class Looking(Rising):
    """Keeps the weights that were scored."""

    def __init__(self, training: Training, into: list[dict[str, Tensor]]) -> None:
        self.training, self.into = training, into

    def score(self, vectors: object, device: torch.device) -> float:
        self.into.append(weights(self.training))
        return super().score(vectors, device)


def weights(training: Training) -> dict[str, Tensor]:
    parts = (("encoder", training.encoder), ("method", training.method))
    return {
        f"{part}.{name}": parameter.detach().clone()
        for part, module in parts
        for name, parameter in module.named_parameters()
    }


def lines(training: Training) -> list[dict[str, float]]:
    return [json.loads(line) for line in training.log_path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (CKD, {"queue": 10}),
        (IBKD, {"gamma": 0.05}),
        (SimTDE, {"relation": 1.0, "head": "kept"}),
        (SimCSE, {}),
        (IBKDFinetune, {"gamma": 0.05, "keep": 1.0, "dim": 4}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_batches_of_a_step_move_the_weights_as_one_large_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Method], options: Mapping[str, Any]
) -> None:
    """Two steps, so that what a method keeps of the first is seen by the second; with SGD, which hides no scale."""

    def plain(model: torch.nn.Module, settings: Settings) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=settings.lr)

    monkeypatch.setattr(loop, "make_optimizer", plain)
    large = [list(range(8)), list(range(8, 16))]
    small = [[0, 1, 2], [3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13], [14, 15]]
    runs = [
        make_training(tmp_path / "large", make_method(kind, **options), large),
        make_training(tmp_path / "small", make_method(kind, **options), small, grad_accum=2),
    ]
    before = weights(runs[0])
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(runs[1]).items())
    assert [training.run().step for training in runs] == [2, 2]
    after = [weights(training) for training in runs]
    largest = max(float((after[0][name] - start).abs().max()) for name, start in before.items())
    assert largest > 1e-3
    for name, start in before.items():
        moved = [found[name] - start for found in after]
        torch.testing.assert_close(
            moved[1], moved[0], rtol=2e-3, atol=1e-4 * largest, msg=lambda m, n=name: f"{n}: {m}"
        )
    for one, other in zip(*map(lines, runs), strict=True):
        for term in set(one) - TIMINGS:
            assert other[term] == pytest.approx(one[term], rel=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "auto"])
@pytest.mark.parametrize("kind", [MSE, SimTDE, SimCSE])
def test_an_encoder_need_not_be_a_transformer(tmp_path: Path, kind: type[Method], dtype: str) -> None:
    encoder = make_static_encoder([f"word{number}" for number in range(28)], WIDTH)
    start = encoder.embedding.weight.detach().clone()
    batches = [list(range(first, first + 8)) for first in range(0, 32, 8)]
    training = make_training(tmp_path, make_method(kind), batches, encoder, epochs=5, dtype=dtype, weight_decay=0.0)

    def loss() -> float:
        batch = training.collate(np.arange(8), WHOLE)
        with torch.no_grad():
            return float(sum(training.method.objective(**training.views(batch)).values()))

    before = loss()
    assert training.run().step == 20
    assert loss() < before
    assert bool((encoder.embedding.weight[5:] != start[5:]).any(dim=1).all())
    assert torch.equal(encoder.embedding.weight[:5], start[:5])  # of tokens that occur in no text


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_batch_enters_the_queue_after_its_own_loss(tmp_path: Path, accumulate: int) -> None:
    seen: list[Tensor] = []

    class Watched(CKD):
        def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
            seen.append(self.filled.clone())
            return super().objective(student, teacher)

    step = 4 * accumulate
    batches = [list(range(start, start + 4)) for start in range(0, 4 * step, 4)]
    make_training(tmp_path, make_method(Watched, queue=2 * step), batches, grad_accum=accumulate).run()
    assert [len(queue) for queue in seen] == [0, step, 2 * step, 2 * step]
    earlier = torch.nn.functional.normalize(TARGETS, dim=1)
    torch.testing.assert_close(seen[1], earlier[:step])
    torch.testing.assert_close(seen[2], earlier[: 2 * step])
    torch.testing.assert_close(seen[3], torch.cat([earlier[2 * step : 3 * step], earlier[step : 2 * step]]))


@pytest.mark.parametrize("seed", [0, 2**63 - 1])
def test_dropout_is_drawn_anew_for_every_batch_and_once_for_both_of_its_passes(tmp_path: Path, seed: int) -> None:
    """All batches hold the same rows and the weights stay, so dropout alone tells vectors apart."""
    method = make_method(SimCSE)
    training = make_training(tmp_path, method, [[0, 1, 2]] * 4, lr=0.0, dropout=0.3, grad_accum=2, seed=seed)
    views, seen = training.views, []

    def noted(batch: Batch) -> dict[str, Tensor]:
        found = views(batch)
        seen.append(found["anchor"].detach().clone())
        return found

    training.views = noted
    training.run()
    # Of each step: both batches without, then both with what the backward pass wants.
    assert len(seen) == 8
    for first in (0, 4):
        assert torch.equal(seen[first], seen[first + 2])
        assert torch.equal(seen[first + 1], seen[first + 3])
    drawn = [seen[0], seen[1], seen[4], seen[5]]
    assert not any(torch.allclose(drawn[i], drawn[j]) for i in range(4) for j in range(i))


def test_on_the_cpu_a_step_seeds_no_other_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each kind of device that is not there, torch would format a stack trace."""
    training = make_training(tmp_path, make_method(MSE), [[0, 1, 2]] * 2, dropout=0.3)
    seeded: list[int] = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    training.run()
    assert training.progress.step == 2
    assert seeded == []


class CutOffError(Exception):
    """Raised in the middle of a run."""


def cut_off_at(method: Method, call: int) -> None:
    objective: Callable[..., dict[str, Tensor]] = method.objective
    calls = [0]

    def counted(**views: Tensor) -> dict[str, Tensor]:
        calls[0] += 1
        if calls[0] == call:
            raise CutOffError
        return objective(**views)

    method.objective = counted  # type: ignore[method-assign]


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(("kind", "options"), [(CKD, {"queue": 20}), (CRD, {"memory": 20, "dim": 4})])
def test_a_run_of_joined_batches_that_was_cut_off_ends_as_one_that_was_not(
    tmp_path: Path, kind: type[Method], options: Mapping[str, Any], background: bool
) -> None:
    """Queue and memory are half overwritten when it happens: what comes next goes where it would have gone."""
    batches = [[row, row + 1, row + 2, row + 3] for row in range(0, 24, 4)]
    numbers: dict[str, Any] = {"grad_accum": 2, "dropout": 0.2, "epochs": 2, "checkpoint_seconds": 0.0}
    whole = make_training(tmp_path / "whole", make_method(kind, **options), batches, **numbers)
    numbers["background"] = background
    whole.run()
    first = make_training(tmp_path / "part", make_method(kind, **options), batches, **numbers)
    cut_off_at(first.method, 5)  # in the second epoch
    with pytest.raises(CutOffError):
        first.run()
    with first.log_path.open("a") as log:
        log.write('{"step": 5}\n{"st')  # of a step whose weights were not saved
    # Another process begins with other random heads and memories, which must not matter.
    torch.manual_seed(9)
    shapes = Shapes(WIDTH, TEACHER, hidden=WIDTH)
    again = make_training(tmp_path / "part", kind(shapes, options), batches, make_encoder(seed=5), **numbers)
    again.dev = first.dev
    calls = []
    again.views = lambda batch, views=again.views: (calls.append(len(batch)), views(batch))[1]
    assert again.run().step == whole.progress.step == 6
    assert len(calls) == 2 * 2 * 2  # the steps that were left, both batches, both passes
    for one, other in ((whole.encoder, again.encoder), (whole.method, again.method)):
        wanted, found = one.state_dict(), other.state_dict()
        assert wanted.keys() == found.keys()
        for name, value in wanted.items():
            assert torch.equal(found[name], value) if isinstance(value, Tensor) else found[name] == value, name
    logs = [[{k: v for k, v in line.items() if k not in TIMINGS} for line in lines(t)] for t in (whole, again)]
    assert logs[0] == logs[1]


def test_the_running_mean_is_what_is_scored_and_kept(tmp_path: Path) -> None:
    """Against the weights of every step of the same run without a mean, averaged as the definition says."""
    batches = [[row, row + 1, row + 2, row + 3] for row in range(0, 48, 4)]
    seen: list[dict[str, Tensor]] = []
    scored: list[dict[str, Tensor]] = []

    training = make_training(tmp_path / "plain", make_method(SimTDE), batches)
    training.dev = Looking(training, seen)  # type: ignore[assignment]
    training.run()
    training = make_training(tmp_path / "mean", make_method(SimTDE), batches, ema=0.5)
    training.dev = Looking(training, scored)  # type: ignore[assignment]
    training.run()
    assert len(seen) == len(scored) == 13
    mean = seen[0]
    for step, after in enumerate(seen[1:], start=1):
        decay = min(0.5, step / (step + 9))
        mean = {name: decay * mean[name] + (1 - decay) * after[name] for name in after}
        # So the mean is what dev saw, and it left no trace in the weights that were trained on.
        for name, value in mean.items():
            torch.testing.assert_close(scored[step][name], value, rtol=1e-4, atol=1e-6)
    kept = weights(training)
    assert all(torch.equal(kept[name], scored[-1][name]) for name in kept)
    assert any((kept[name] - seen[-1][name]).abs().max() > 1e-3 for name in kept)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of 4 bits are possible for small matrices, too."""
    for module in (int4, weight_formats):
        monkeypatch.setattr(module, "BLOCK", 4)
    monkeypatch.setattr(weight_formats, "FEWEST", 1)


@pytest.mark.parametrize("own", [{"ema": 0.9}, {"weight_format": "int4"}], ids=["mean", "rounded"])
@pytest.mark.usefixtures("small_blocks")
def test_a_run_with_a_running_mean_or_rounded_weights_that_was_cut_off_ends_as_one_that_was_not(
    tmp_path: Path, own: dict[str, Any]
) -> None:
    batches = [[row, row + 1, row + 2, row + 3] for row in range(0, 24, 4)]
    numbers = {"epochs": 2, "checkpoint_seconds": 0.0, "eval_every": 5, **own}
    whole = make_training(tmp_path / "whole", make_method(SimTDE), batches, **numbers)
    whole.run()
    first = make_training(tmp_path / "part", make_method(SimTDE), batches, **numbers)
    cut_off_at(first.method, 8)
    with pytest.raises(CutOffError):
        first.run()
    again = make_training(tmp_path / "part", make_method(SimTDE), batches, make_encoder(seed=5), **numbers)
    again.dev = first.dev
    assert again.run().step == 12
    wanted = weights(whole)
    assert all(torch.equal(value, wanted[name]) for name, value in weights(again).items())


@pytest.mark.usefixtures("small_blocks")
def test_weights_of_four_bits_are_scored_and_kept_but_not_trained_on(tmp_path: Path) -> None:
    batches = [[row, row + 1, row + 2, row + 3] for row in range(0, 24, 4)]
    numbers = {"ema": 0.5, "weight_format": "int4", "eval_every": 1}
    training = make_training(tmp_path / "whole", make_method(SimTDE), batches, **numbers)
    training.run()
    matrices = {id(one) for one in int4.packable_weights(training.encoder)}
    rounded = {name for name, one in training.encoder.named_parameters() if id(one) in matrices}
    assert len(rounded) > 5
    kept = training.encoder.state_dict()
    assert all(torch.equal(int4.blocks_of(kept[name]).decoded(), kept[name]) for name in rounded)
    assert training.mean is not None
    # The steps change the exact weights by less than a level, and this is not lost.
    exact = [value for value in training.mean.state()["means"] if value.dim() == 2]  # type: ignore[union-attr]
    assert any(not torch.equal(int4.blocks_of(value).decoded(), value) for value in exact)


@pytest.mark.usefixtures("small_blocks")
def test_the_start_is_fitted_to_texts_and_rounded(tmp_path: Path) -> None:
    """Also with a running mean, which starts from the fitted weights."""
    batches = [[row, row + 1, row + 2, row + 3] for row in range(0, 24, 4)]
    for own in ({}, {"ema": 0.5}):
        seen: list[dict[str, Tensor]] = []
        encoder = make_encoder()
        exact = {name: value.clone() for name, value in encoder.state_dict().items()}
        folder, numbers = tmp_path / str(len(own)), {"weight_format": "int4", **own}
        training = make_training(folder, make_method(SimTDE), batches, encoder, **numbers)
        training.dev = Looking(training, seen)  # type: ignore[assignment]
        training.run()
        differing = 0
        for name, value in seen[0].items():
            if (old := exact.get(name.removeprefix("encoder."))) is not None and value.dim() == 2:
                assert torch.equal(int4.blocks_of(value).decoded(), value)
                differing += not torch.equal(value, int4.blocks_of(old).decoded())
        assert differing > 3


@pytest.mark.usefixtures("small_blocks")
def test_a_head_that_is_deployed_is_rounded_too(tmp_path: Path) -> None:
    batches = [[row, row + 1, row + 2, row + 3] for row in range(0, 24, 4)]
    training = make_training(tmp_path, make_method(SimTDE, head="kept"), batches, weight_format="int4")
    training.run()
    head = training.method.deployed_head()
    assert head is not None
    assert torch.equal(int4.blocks_of(head.linear.weight).decoded(), head.linear.weight)


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals are taken as in a command, but never sent to the process of the tests."""
    monkeypatch.setattr(signals, "_send_again", lambda *_: None)


class Signalled(Rising):
    """A dev score in the middle of which, at the given call, a signal arrives."""

    def __init__(self, call: int) -> None:
        self.call = call

    def score(self, vectors: Any, device: torch.device) -> float:
        if self.asked + 1 == self.call:
            self.call = 0
            signals._take(signal.SIGUSR1, None)
        vectors(*padded(np.array([0, 1])))
        return super().score(vectors, device)


@pytest.mark.usefixtures("signalled")
@pytest.mark.parametrize("ema", [None, 0.9])
@pytest.mark.parametrize("place", ["step", "long step", "backward pass", "batch", "score", "last score"])
def test_a_signal_leaves_a_checkpoint_from_which_it_ends_as_if_there_had_been_none(
    tmp_path: Path, place: str, ema: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No checkpoint is due before the end, so that all that is kept is what the signal left."""
    batches = [[row, row + 1, row + 2, row + 3] for row in range(0, 24, 4)]
    numbers = {"epochs": 2, "grad_accum": 2, "checkpoint_seconds": 1e9, "ema": ema, "eval_every": 2, "dropout": 0.2}
    whole = make_training(tmp_path / "whole", make_method(CKD, queue=10), batches, **numbers)
    whole.run()
    first = make_training(tmp_path / "part", make_method(CKD, queue=10), batches, **numbers)
    first.dev = Signalled({"score": 2, "last score": 4}.get(place, 0))
    objective = first.method.objective
    calls = []

    def signalled(**views: Tensor) -> dict[str, Tensor]:
        calls.append(None)
        if (place, len(calls)) in (("step", 3), ("long step", 3), ("backward pass", 3), ("batch", 4)):
            signals._take(signal.SIGTERM, None)
        if (place, len(calls)) == ("long step", 3):
            waited()
        return objective(**views)

    def waited(*_: object) -> None:
        """What is sent when a signal has waited for some time."""
        if signals.asked() is not None:
            signals._again(signals.AGAIN, None)

    if place == "backward pass":
        monkeypatch.setattr(agreement, "_nothing", waited)
    first.method.objective = signalled  # type: ignore[method-assign]
    with signals.Working(), pytest.raises(signals.StoppedError) as stopped:
        first.run()
    done = {"step": 2, "long step": 2, "backward pass": 2, "batch": 3, "score": 2, "last score": 6}[place]
    assert stopped.value.whole
    assert stopped.value.hint == f"saved after step {done}; run the same command again to resume there"
    torch.manual_seed(9)
    again = make_training(tmp_path / "part", make_method(CKD, queue=10), batches, make_encoder(seed=5), **numbers)
    again.dev = first.dev
    assert again.run().step == whole.progress.step == 6
    for one, other in ((whole.encoder, again.encoder), (whole.method, again.method)):
        wanted, found = one.state_dict(), other.state_dict()
        for name, value in wanted.items():
            assert torch.equal(found[name], value) if isinstance(value, Tensor) else found[name] == value, name
    logs = [[{k: v for k, v in line.items() if k not in TIMINGS} for line in lines(t)] for t in (whole, again)]
    assert logs[0] == logs[1]


@pytest.mark.usefixtures("signalled")
def test_a_signal_before_the_first_step_leaves_nothing_to_resume(tmp_path: Path) -> None:
    training = make_training(tmp_path, make_method(CKD, queue=10), [[0, 1, 2, 3]])
    training.dev = Signalled(1)
    with signals.Working(), pytest.raises(signals.StoppedError) as stopped:
        training.run()
    assert stopped.value.hint is None
    assert not training.checkpoints.exist()


@pytest.mark.usefixtures("signalled")
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_that_are_no_numbers_are_not_saved_on_a_signal(tmp_path: Path, value: float) -> None:
    training = make_training(tmp_path, make_method(CKD, queue=10), [[0, 1, 2, 3]] * 3, eval_every=3)
    objective = training.method.objective

    def spoilt(**views: Tensor) -> dict[str, Tensor]:
        signals._take(signal.SIGTERM, None)
        return {name: term * value for name, term in objective(**views).items()}

    training.method.objective = spoilt  # type: ignore[method-assign]
    with signals.Working(), pytest.raises(signals.StoppedError):
        training.run()
    assert not training.checkpoints.exist()


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_log_of_ibkd_holds_the_kernels_means_of_the_last_step(tmp_path: Path, accumulate: int) -> None:
    gamma = 0.05
    training = make_training(
        tmp_path,
        make_method(IBKD, gamma=gamma),
        [[0, 1, 2, 3, 4], [5, 6, 7], [8, 9, 10], [11, 12]],
        grad_accum=accumulate,
        lr=1e-4,
    )
    views, seen = training.views, []
    training.views = lambda batch: (seen.append(found := views(batch)), found)[1]
    training.run()
    assert "kernel_x" not in lines(training)[0]
    last = lines(training)[-1]
    assert last["step"] == 4 // accumulate
    for name, view in (("kernel_x", "inputs"), ("kernel_s", "student")):
        vectors = torch.cat([found[view].detach() for found in seen[-accumulate:]]).double().numpy()
        values = [np.exp(-gamma * ((a - b) ** 2).sum()) for i, a in enumerate(vectors) for b in vectors[:i]]
        assert 0.01 < last[name] < 0.99
        assert last[name] == pytest.approx(np.mean(values), rel=1e-4)


class Fixed:
    """A dev score that tells nothing but what it was told to, in turn; the last for good."""

    measure, protocol, slack = "list", "written down", 0.05

    def __init__(self, *scores: float) -> None:
        self.scores = list(scores)

    def score(self, vectors: object, device: torch.device) -> float:
        return self.scores.pop(0) if len(self.scores) > 1 else self.scores[0]


@pytest.mark.parametrize(
    ("scores", "best"),
    [((50.0,), 1), ((50.0, 40.0, 50.0), 2), ((50.0, 49.0), 0), ((50.0, 60.0), 1), ((9.0, 9.0, 10.0), 2)],
)
def test_of_equal_scores_the_first_after_the_start_is_kept(
    tmp_path: Path, scores: tuple[float, ...], best: int
) -> None:
    """A start that is as good as what was trained may be so by a score that can say little: two held-out anchors."""
    training = make_training(tmp_path, make_method(SimTDE), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    training.dev = Fixed(*scores)
    assert training.run().best_step == best


def test_what_is_no_number_is_told_before_it_is_scored_and_forgotten(tmp_path: Path) -> None:
    """The window of the newest steps is emptied at each look, checkpoint or not."""
    training = make_training(tmp_path, make_method(SimTDE), [[0, 1, 2, 3]] * 4, eval_every=2)
    assert training.settings.checkpoint_seconds > 10
    whole, calls = training.method.objective, [0]

    def broken(**views: Tensor) -> dict[str, Tensor]:
        calls[0] += 1
        return {name: term * (torch.nan if calls[0] == 1 else 0.0) for name, term in whole(**views).items()}

    training.method.objective = broken  # type: ignore[method-assign]
    with pytest.raises(TrainingError, match=r"NaN or infinite \(step 1 to 2\)"):
        training.run()


def test_a_batch_of_one_has_nothing_to_learn_from_and_that_is_told(tmp_path: Path) -> None:
    training = make_training(tmp_path, make_method(IBKD), [[row] for row in range(6)], batch_size=1, eval_every=2)
    progress = training.run()
    assert "the loss has no gradient" in progress.warning
    assert "`batch_size`" in progress.warning


def test_a_start_without_a_score_is_not_the_best_for_ever(tmp_path: Path) -> None:
    training = make_training(tmp_path, make_method(SimTDE), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    training.dev = Fixed(float("nan"), 10.0, 20.0, 15.0)
    progress = training.run()
    assert (progress.best_step, progress.best_score, progress.start_score) == (2, 20.0, LOWEST)
    assert "NaN" not in training.log_path.read_text()


def test_a_start_with_nan_among_its_weights_is_refused(tmp_path: Path) -> None:
    training = make_training(tmp_path, make_method(SimTDE), [[0, 1, 2, 3]])
    with torch.no_grad():
        next(training.encoder.parameters())[0] = torch.nan
    with pytest.raises(SentcompressError, match="NaN or infinity in the tensor transformer"):
        training.run()


@pytest.mark.parametrize(
    ("kind", "options", "accumulate"),
    [
        (CKD, {"queue": 10}, 1),
        (CKD, {"queue": 10}, 2),
        (CRD, {"memory": 16}, 1),
        (IBKD, {"gamma": 0.05}, 1),
        (SimTDE, {"relation": 1.0, "states": 1.0, "contrast": 1.0, "head": "kept"}, 1),
        (SimCSE, {"temperature": 0.0, "keep": 1.0}, 1),
        (IBKDFinetune, {"gamma": 0.05, "dim": 4}, 1),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_between_two_looks_a_step_asks_the_device_for_nothing(
    tmp_path: Path, kind: type[Method], options: Mapping[str, Any], accumulate: int
) -> None:
    """Steps 2 to 8 of 9: the first comes after the score of the start, the last is scored and saved."""
    batches = [list(range(first, first + 4)) for first in range(9 * accumulate)]
    numbers = {"eval_every": 100, "clip": 1.0, "ema": 0.9, "grad_accum": accumulate}
    training = make_training(tmp_path, make_method(kind, **options), batches, dropout=0.1, **numbers)
    found = waits_of(training)
    assert set(found) == {0, 9}, found


def test_neither_does_a_step_of_a_static_student(tmp_path: Path) -> None:
    encoder = make_static_encoder([f"word{number}" for number in range(28)], WIDTH)
    batches = [list(range(first, first + 4)) for first in range(9)]
    training = make_training(tmp_path, make_method(MSE), batches, encoder, eval_every=100)
    found = waits_of(training)
    assert set(found) == {0, 9}, found


def waits_of(training: Training) -> dict[int, set[str]]:
    """For each number of steps done, the calls after which the host waits for the device."""
    found: dict[int, set[str]] = {}
    with HostWaits(lambda name: found.setdefault(training.progress.step, set()).add(name)):
        training.run()
    return found


def test_what_waits_for_a_gpu_is_counted() -> None:
    values, mask = torch.arange(6.0, requires_grad=True), torch.arange(6) % 2 == 0
    with HostWaits() as waits:
        (values[mask] + values[:3]).sum().backward()
        values.detach().where(mask, values.detach()).index_select(0, torch.arange(3))
        before = waits.counts.copy()
        float(values.sum().detach())
        values.detach().cpu()
        mask.tolist()
        torch.tensor(1.0)
        mask.nonzero()
        if values.detach().isfinite().all():
            pass
    wanted = {"_local_scalar_dense": 2, "cpu": 1, "tolist": 1, "tensor": 1, "nonzero": 1}
    assert waits.counts - before == Counter(wanted)
    # A mask as an index waits forwards and backwards; where, index_select and an index of numbers do not.
    assert before == Counter({"index": 1, "index_put": 1})
