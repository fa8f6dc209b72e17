"""Training on a CUDA device: as on a CPU, and nobody waits between two looks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from distilling import make_work
from interrupting import interrupted
from listening import Listener
from tiny_models import load_model, make_tiny_model
from torch import Tensor

from sentcompress.methods import METHODS
from sentcompress.methods.queue_logsumexp import queue_logsumexp, queue_products
from sentcompress.stages import distill, fit_pca, teacher_embed
from sentcompress.store import Artifact, WorkDirectory
from sentcompress.training import residence
from sentcompress.training.loop import Training

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

NUMBERS: dict[str, Any] = {
    "lr": 1e-3,
    "epochs": 4,
    "batch_size": 16,
    "schedule": "constant",
    "warmup_steps": 0,
    "dropout": 0.0,
    "student": "teacher:2",
    "device": "cuda",
    "dtype": "float32",
    "checkpoint_seconds": 0.0,
}


@pytest.fixture
def work(tmp_path: Path, sentences: list[str]) -> WorkDirectory:
    """300 sentences, vectors with two layers, a projection; the teacher has four layers."""
    teacher = make_tiny_model(tmp_path / "teacher", layers=4)
    work = make_work(tmp_path / "work", teacher, sentences)
    teacher_embed.run(teacher_embed.Params(teacher=str(teacher), dtype="float32", layers=(2, 4), force=True), work)
    fit_pca.run(fit_pca.Params(dim=8), work)
    return work


def losses(student: Artifact) -> list[float]:
    """The sum of the loss terms of each log entry after the start."""
    entries = [json.loads(line) for line in (student.path / "log.jsonl").read_text().splitlines()][1:]
    return [sum(terms_of(entry).values()) for entry in entries]


def terms_of(entry: Mapping[str, float]) -> dict[str, float]:
    """The loss terms, which are between the epoch and the speed."""
    names = list(entry)
    return {name: entry[name] for name in names[names.index("epoch") + 1 : names.index("sentences_per_second")]}


def weights(student: Artifact) -> dict[str, Tensor]:
    return load_model(student.path / "model").state_dict()


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", ["auto", "float32"])
@pytest.mark.parametrize("method", METHODS)
def test_the_loss_falls_and_no_step_waits_for_the_device(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch, method: str, dtype: str
) -> None:
    step = Training._step

    def watched(training: Training, *arguments: Any) -> Any:
        if training.progress.step == 0:  # libraries are initialised
            return step(training, *arguments)
        with waiting_is_an_error():
            return step(training, *arguments)

    monkeypatch.setattr(Training, "_step", watched)
    student = distill.run(distill.Params(method=method, name="one", **{**NUMBERS, "dtype": dtype}), work)
    found = losses(student)
    assert np.isfinite(found).all()
    assert student.facts["device"].startswith("cuda")
    half = dtype == "auto" and torch.cuda.is_bf16_supported(including_emulation=False)
    assert student.facts["compute_dtype"] == ("bfloat16" if half else "float32")
    # The queue of ckd and the memory of crd fill up: more negatives make their losses rise.
    assert method in ("ckd", "crd") or found[-1] < found[0]


@pytest.mark.parametrize("method", ["ckd", "crd", "ibkd", "simtde", "lmx-kd"])
def test_the_first_steps_are_those_of_the_cpu(work: WorkDirectory, method: str) -> None:
    """In float32, but for the products with the queue, which are TF32."""
    numbers = {**NUMBERS, "max_steps": 5, "eval_every": 1}
    runs = [
        distill.run(distill.Params(method=method, name=device, **{**numbers, "device": device}), work)
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(losses(runs[1]), losses(runs[0]), rtol=1e-2)


@pytest.mark.parametrize("method", ["ckd", "simtde"])
def test_a_run_that_was_cut_off_ends_as_one_that_was_not(work: WorkDirectory, method: str) -> None:
    """Checkpoints are written in the background after every step."""

    def params(name: str) -> distill.Params:
        return distill.Params(method=method, name=name, **NUMBERS)

    whole = distill.run(params("whole"), work)
    with interrupted(Training, "_step", call=31):
        distill.run(params("part"), work)
    listener = Listener()
    again = distill.run(params("part"), work, listener)
    assert any("resuming after step 30" in message for message in listener.notes)
    assert again.facts["steps"] == whole.facts["steps"]
    wanted = weights(whole)
    for name, value in weights(again).items():
        torch.testing.assert_close(value, wanted[name], rtol=1e-2, atol=1e-3, msg=lambda told, n=name: f"{n}: {told}")


@pytest.mark.parametrize("place", ["on the device", "in memory", "on the disk"])
def test_vectors_are_the_same_wherever_they_are(
    work: WorkDirectory, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place != "on the device":
        monkeypatch.setattr(residence, "free_on_device", lambda device: 0)
    if place == "on the disk":
        monkeypatch.setattr(residence, "available_memory", lambda: 0)
    listener = Listener()
    numbers = {**NUMBERS, "max_steps": 5, "eval_every": 1}
    student = distill.run(distill.Params(method="mse", name="one", **numbers), work, listener)
    assert any(f"teacher vectors (0.04 MB) {place}" in message for message in listener.notes)
    monkeypatch.undo()
    other = distill.run(distill.Params(method="mse", name="other", **numbers), work)
    np.testing.assert_allclose(losses(student), losses(other), rtol=1e-4)


@pytest.mark.parametrize("keys", [1000, 300_000])
def test_the_queue_in_tf32_is_near_float64(keys: int) -> None:
    """Unit vectors times a scale of 20, as at a temperature of 0.05."""
    generator = torch.Generator().manual_seed(0)
    query, queue = (
        torch.nn.functional.normalize(torch.randn(rows, 256, generator=generator), dim=1) for rows in (512, keys)
    )
    exact = (20 * query.double() @ queue.T.double()).logsumexp(dim=1)
    on_gpu = (20 * query).cuda().requires_grad_()
    found = queue_logsumexp(on_gpu, queue.cuda())
    assert float((found.detach().cpu().double() - exact).abs().max()) < 2e-3
    found.sum().backward()
    assert on_gpu.grad is not None
    products = queue_products(on_gpu.detach(), queue[:1000].cuda()).cpu()
    assert float((products - 20 * query @ queue[:1000].T).abs().max()) < 0.05
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two CUDA devices")
@pytest.mark.parametrize("method", ["ckd", "simtde"])
def test_two_ranks_end_with_the_weights_of_one(work: WorkDirectory, method: str) -> None:
    """Over NCCL, each with half of every batch."""
    numbers = {**NUMBERS, "max_steps": 10}
    alone = distill.run(distill.Params(method=method, name="alone", **numbers), work)
    told = [
        *("--method", method, "--student", "teacher:2", "--device", "cuda", "--dtype", "float32", "--lr", "1e-3"),
        *("--epochs", "4", "--batch-size", "16", "--schedule", "constant", "--warmup-steps", "0", "--dropout", "0"),
        *("--max-steps", "10", "--name", "ranks", "--work", str(work.path)),
    ]
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*launch, "-m", "sentcompress", "distill", *told], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    together = WorkDirectory(work.path).get("students", "ranks")
    wanted = weights(alone)
    for name, value in weights(together).items():
        torch.testing.assert_close(value, wanted[name], rtol=1e-2, atol=1e-3, msg=lambda said, n=name: f"{n}: {said}")
