"""CKD against its equation in NumPy, and its queue."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from gradients import rows

from sentcompress.methods import queue_logsumexp as queue_module
from sentcompress.methods.base import Shapes
from sentcompress.methods.ckd import CKD
from sentcompress.methods.queue_logsumexp import chunk_rows, queue_logsumexp, queue_products, tf32

STUDENT, TEACHER = 5, 8


def batch(size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    return torch.tensor(random.normal(size=(size, STUDENT))), torch.tensor(random.normal(size=(size, TEACHER)))


def equation(
    s: np.ndarray, t: np.ndarray, queue: np.ndarray, weight: np.ndarray, bias: np.ndarray, scale: float
) -> tuple[float, np.ndarray, np.ndarray, float]:
    """The loss, and its gradients by the student's vectors, the head's weight and the scale's exponent p."""
    projected = s @ weight.T + bias
    length = np.sqrt((projected**2).sum(1, keepdims=True))
    query, keys = projected / length, np.concatenate([rows(t), queue])
    cosines = query @ keys.T
    powers = np.exp(scale * cosines)
    shares = powers / powers.sum(1, keepdims=True)
    own = np.arange(len(s))
    loss = -np.log(shares[own, own]).mean()
    by_logit = shares.copy()
    by_logit[own, own] -= 1
    by_logit /= len(s)
    by_query = scale * by_logit @ keys
    by_projected = (by_query - (by_query * query).sum(1, keepdims=True) * query) / length
    by_exponent = float((by_logit * cosines).sum() * scale)
    return float(loss), by_projected @ weight, by_projected.T @ s, by_exponent


@pytest.mark.parametrize("temperature", [0.0, 0.05])
def test_the_loss_and_its_gradients_are_the_equation(temperature: float) -> None:
    torch.manual_seed(0)
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 12, "temperature": temperature}).double()
    seen = [batch(4, seed) for seed in (1, 2)]
    for student, teacher in seen:
        method.update(student, teacher)
    queue = rows(np.concatenate([teacher.numpy() for _, teacher in seen]))
    s, t = batch(4, 3)
    student = s.clone().requires_grad_()
    loss = method.objective(student, t)["contrastive"]
    loss.backward()
    scale = 1 / temperature if temperature else math.e
    weight, bias = method.head.weight.detach().numpy(), method.head.bias.detach().numpy()
    wanted, by_student, by_weight, by_exponent = equation(s.numpy(), t.numpy(), queue, weight, bias, scale)
    assert loss.item() == pytest.approx(wanted, rel=1e-9)
    assert student.grad is not None
    assert method.head.weight.grad is not None
    np.testing.assert_allclose(student.grad.numpy(), by_student, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(method.head.weight.grad.numpy(), by_weight, rtol=1e-7, atol=1e-12)
    if temperature:
        assert method.log_scale is None
    else:
        assert method.log_scale is not None
        assert float(method.log_scale.grad) == pytest.approx(by_exponent, rel=1e-7)


def test_no_gradient_reaches_the_queue_or_what_was_put_in() -> None:
    """Three steps with vectors that would take a gradient, as those of a student do."""
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 8}).double()
    optimizer = torch.optim.SGD(method.parameters(), lr=0.1)
    earlier: list[torch.Tensor] = []
    for seed in range(3):
        student, teacher = (view.requires_grad_() for view in batch(3, seed))
        held = method.queue.clone()
        method.objective(student, teacher.detach())["contrastive"].backward()
        assert student.grad is not None
        assert student.grad.abs().sum() > 0
        optimizer.step()
        assert torch.equal(method.queue, held)
        assert not method.queue.requires_grad
        assert method.queue.grad is None
        # Nothing flows back through the queue to vectors of earlier steps.
        assert all(view.grad is None for view in earlier)
        method.update(student, teacher)
        assert method.queue.grad_fn is None
        assert teacher.grad is None
        earlier.append(teacher)
    assert not [name for name, _ in method.named_parameters() if "queue" in name]


def test_the_temperature_starts_at_one_over_e() -> None:
    assert CKD(Shapes(STUDENT, TEACHER), {}).watched()["temperature"] == pytest.approx(0.3679, abs=1e-4)


def test_the_queue_is_empty_at_the_start() -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 8}).double()
    assert len(method.filled) == 0
    student, teacher = batch(1, 0)
    # One sentence, no queue: nothing to tell it from.
    assert method.objective(student, teacher)["contrastive"].item() == 0


@pytest.mark.parametrize(("batches", "negatives"), [(0, 3), (1, 7), (2, 11), (3, 13), (9, 13)])
def test_negatives_are_the_others_of_the_batch_and_the_queue(batches: int, negatives: int) -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 10}).double()
    for seed in range(batches):
        method.update(*batch(4, seed))
    with torch.no_grad():
        method.head.weight.zero_()
        method.head.bias.zero_()  # every key is equally near, so the loss is the log of their number
    student, teacher = batch(4, 99)
    loss = method.objective(student, teacher)["contrastive"].item()
    assert math.exp(loss) == pytest.approx(negatives + 1)


def test_the_batch_enters_the_queue_after_its_loss_and_not_before() -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 10}).double()
    student, teacher = batch(4, 0)
    before = method.objective(student, teacher)["contrastive"].item()
    assert len(method.filled) == 0
    assert method.objective(student, teacher)["contrastive"].item() == before
    method.update(student, teacher)
    torch.testing.assert_close(method.filled, torch.tensor(rows(teacher.numpy())))


def test_first_in_first_out() -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 6}).double()
    arrived = []
    for seed, size in enumerate((4, 1, 4, 3, 2, 6, 5)):
        student, teacher = batch(size, seed)
        method.update(student, teacher)
        arrived.extend(rows(teacher.numpy()))
        held = {tuple(np.round(row, 12)) for row in method.filled.numpy()}
        assert held == {tuple(np.round(row, 12)) for row in arrived[-6:]}


def test_a_batch_longer_than_the_queue_leaves_its_last_rows() -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 3}).double()
    student, teacher = batch(8, 0)
    method.update(student, teacher)
    held = sorted(map(tuple, method.filled.numpy()))
    np.testing.assert_allclose(held, sorted(map(tuple, rows(teacher.numpy())[-3:])))


def test_no_queue_is_the_batch_alone() -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 0}).double()
    method.update(*batch(4, 0))
    student, teacher = batch(4, 1)
    assert len(method.filled) == 0
    assert math.isfinite(method.objective(student, teacher)["contrastive"].item())


def test_the_queue_is_saved_and_goes_on_where_it_was() -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 6}).double()
    for seed in range(4):
        method.update(*batch(4, seed))
    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    again = CKD(Shapes(STUDENT, TEACHER), {"queue": 6}).double()
    again.load_state_dict(torch.load(file, weights_only=True))
    for each in (method, again):
        each.update(*batch(4, 7))
    assert torch.equal(method.queue, again.queue)
    student, teacher = batch(4, 8)
    losses = [float(each.objective(student, teacher)["contrastive"]) for each in (method, again)]
    assert losses[0] == losses[1]


def test_the_head_is_thrown_away() -> None:
    method = CKD(Shapes(STUDENT, TEACHER), {"queue": 0})
    vectors = torch.randn(3, STUDENT)
    assert method.deployed_head() is None
    assert torch.equal(method.deploy(vectors), vectors)


@pytest.mark.parametrize("chunk", [3, 2048, 2**20])
@pytest.mark.parametrize("keys", [1, 7, 5000])
def test_the_sum_over_the_queue_in_pieces_is_the_plain_one(
    monkeypatch: pytest.MonkeyPatch, keys: int, chunk: int
) -> None:
    monkeypatch.setattr(queue_module, "CHUNK", chunk)
    generator = torch.Generator().manual_seed(keys)
    query = (30 * torch.randn(6, 8, generator=generator, dtype=torch.float64)).requires_grad_()
    queue = torch.randn(keys, 8, generator=generator, dtype=torch.float64)
    weights = torch.randn(6, generator=generator, dtype=torch.float64)
    (queue_logsumexp(query, queue) * weights).sum().backward()
    plain = query.detach().clone().requires_grad_()
    wanted = (plain @ queue.T).logsumexp(dim=1)
    (wanted * weights).sum().backward()
    torch.testing.assert_close(queue_logsumexp(query, queue), wanted)
    torch.testing.assert_close(query.grad, plain.grad)


def test_products_with_a_queue_have_the_gradient_of_plain_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    query, keys = (torch.randn(rows, 8, generator=generator, requires_grad=True) for rows in (6, 50))
    (queue_products(query, keys).sigmoid()).sum().backward()
    found, query.grad = query.grad, None
    products = query @ keys.detach().T
    products.sigmoid().sum().backward()
    assert torch.equal(queue_products(query, keys), products)
    torch.testing.assert_close(found, query.grad)
    assert keys.grad is None


def test_a_gpu_gets_larger_chunks_of_the_queue() -> None:
    assert [chunk_rows(512, device) for device in ("cpu", "cuda")] == [2048, 131_072]
    assert chunk_rows(10**6, "cuda") == 2048


def test_only_products_on_a_cuda_device_use_tf32() -> None:
    seen = []
    for device in ("cpu", "cuda"):
        with tf32(torch.device(device)):
            seen.append(torch.get_float32_matmul_precision())
    assert seen == ["highest", "high"]
    assert torch.get_float32_matmul_precision() == "highest"
