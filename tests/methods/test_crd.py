"""CRD against its equation in NumPy, and its memory."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.base import Shapes
from sentcompress.methods.crd import CRD

STUDENT, TEACHER, DIM, SIZE = 5, 7, 4, 6


def make(seed: int = 0, **options: object) -> CRD:
    torch.manual_seed(seed)
    return CRD(Shapes(STUDENT, TEACHER), {"dim": DIM, "memory": SIZE, **options}).double()


def batch(size: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = np.random.default_rng(seed)
    return torch.tensor(random.normal(size=(size, STUDENT))), torch.tensor(random.normal(size=(size, TEACHER)))


def probability(u: np.ndarray, v: np.ndarray, negatives: int, z: float, tau: float) -> float:
    e = math.exp(float(u @ v) / tau)
    return e / (e + negatives * z)


def half(asking: np.ndarray, others: np.ndarray, memory: np.ndarray, z: float, tau: float) -> float:
    total = 0.0
    for a, own in zip(asking, others, strict=True):
        total -= math.log(probability(a, own, len(memory), z, tau))
        total -= sum(math.log(1 - probability(a, old, len(memory), z, tau)) for old in memory)
    return total / len(asking)


@pytest.mark.parametrize("normaliser", [0.0, 0.01])
def test_the_loss_and_its_gradients_are_the_equation(normaliser: float) -> None:
    method = make(temperature=0.2, normaliser=normaliser)
    z = float(method.log_normaliser.exp())
    if normaliser:  # as the paper's 1 / M
        assert z == pytest.approx(normaliser, rel=1e-6)
    parameters = {name: tensor.detach().numpy().copy() for name, tensor in method.named_parameters()}
    memories = (method.teacher_memory.numpy(), method.student_memory.numpy())
    s, t = batch(3, 1)
    u0 = rows(s.numpy() @ parameters["student_head.weight"].T + parameters["student_head.bias"])
    v0 = rows(t.numpy() @ parameters["teacher_head.weight"].T + parameters["teacher_head.bias"])

    def loss(s: np.ndarray, teacher_weight: np.ndarray) -> float:
        """What a vector is compared with is held fast: only the asking side moves."""
        u = rows(s @ parameters["student_head.weight"].T + parameters["student_head.bias"])
        v = rows(t.numpy() @ teacher_weight.T + parameters["teacher_head.bias"])
        return half(u, v0, memories[0], z, 0.2) + half(v, u0, memories[1], z, 0.2)

    student = s.clone().requires_grad_()
    terms = method.objective(student, t)
    assert list(terms) == ["student", "teacher"]
    torch.stack(list(terms.values())).sum().backward()
    weight = parameters["teacher_head.weight"]
    assert float(sum(terms.values())) == pytest.approx(loss(s.numpy(), weight), rel=1e-9)
    assert student.grad is not None
    by_student = differences(lambda moved: loss(moved, weight), s.numpy())
    np.testing.assert_allclose(student.grad.numpy(), by_student, atol=1e-7)
    assert method.teacher_head.weight.grad is not None
    by_weight = differences(lambda moved: loss(s.numpy(), moved), weight)
    np.testing.assert_allclose(method.teacher_head.weight.grad.numpy(), by_weight, atol=1e-7)


def test_numbers_stay_finite_where_probabilities_round_to_zero_or_one() -> None:
    method = CRD(Shapes(STUDENT, TEACHER), {"dim": DIM, "memory": SIZE, "temperature": 0.001})
    student, teacher = (each.float().requires_grad_() for each in batch(4, 1))
    total = torch.stack(list(method.objective(student, teacher).values())).sum()
    total.backward()
    assert math.isfinite(float(total))
    assert student.grad is not None
    assert bool(student.grad.isfinite().all())


def test_the_defaults_are_the_papers_numbers() -> None:
    method = CRD(Shapes(STUDENT, TEACHER), {})
    assert method.student_memory.shape == method.teacher_memory.shape == (16_384, 128)
    assert method.settings["temperature"] == 0.07


def test_the_normaliser_is_the_mean_over_random_directions() -> None:
    """In closed form: E exp(k x) for a coordinate x of a random unit vector in 3 dimensions is sinh(k) / k."""
    torch.manual_seed(0)
    method = CRD(Shapes(STUDENT, TEACHER), {"dim": 3, "memory": 2, "temperature": 0.5})
    assert float(method.log_normaliser.exp()) == pytest.approx(math.sinh(2.0) / 2.0, rel=0.05)


def test_the_memory_begins_with_random_directions() -> None:
    method = make()
    for memory in (method.student_memory, method.teacher_memory):
        torch.testing.assert_close(memory.norm(dim=1), torch.ones(SIZE, dtype=torch.float64))
    assert not torch.equal(method.student_memory, method.teacher_memory)


def test_a_batch_enters_after_its_loss_and_over_the_oldest() -> None:
    method = make()
    student, teacher = batch(4, 1)
    before = method.student_memory.clone()
    loss = float(method.objective(student, teacher)["student"].detach())
    assert float(method.objective(student, teacher)["student"].detach()) == loss
    assert torch.equal(method.student_memory, before)
    arrived = []
    for seed, size in enumerate((4, 1, 4, 3, 9, 2)):
        student, teacher = batch(size, seed)
        method.update(student, teacher)
        with torch.no_grad():
            arrived.extend(zip(method.predict(student).numpy(), method.target(teacher).numpy(), strict=True))
        if len(arrived) >= SIZE:
            held = {(*u.round(9), *v.round(9)) for u, v in zip(*memories(method), strict=True)}
            assert held == {(*u.round(9), *v.round(9)) for u, v in arrived[-SIZE:]}
        else:
            np.testing.assert_array_equal(method.student_memory[len(arrived) :], before[len(arrived) :])


def memories(method: CRD) -> tuple[np.ndarray, np.ndarray]:
    return method.student_memory.numpy(), method.teacher_memory.numpy()


def test_the_memory_is_saved_and_goes_on_where_it_was() -> None:
    method = make()
    for seed in range(4):
        method.update(*batch(4, seed))
    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    again = make(seed=99)
    again.load_state_dict(torch.load(file, weights_only=True))
    for each in (method, again):
        each.update(*batch(4, 7))
    assert torch.equal(method.student_memory, again.student_memory)
    assert torch.equal(method.teacher_memory, again.teacher_memory)
    student, teacher = batch(4, 8)
    losses = [[float(term.detach()) for term in each.objective(student, teacher).values()] for each in (method, again)]
    assert losses[0] == losses[1]


def test_both_heads_are_thrown_away() -> None:
    method = make()
    vectors = torch.randn(3, STUDENT, dtype=torch.float64)
    assert method.deployed_head() is None
    assert torch.equal(method.deploy(vectors), vectors)
    assert method.predict(vectors).shape == (3, DIM)


def test_a_student_that_learns_is_told_so_by_the_loss() -> None:
    torch.manual_seed(0)
    method = CRD(Shapes(STUDENT, TEACHER), {"dim": 16, "memory": 64})
    student = torch.nn.Linear(TEACHER, STUDENT)
    weights = [*method.parameters(), *student.parameters()]
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(60):
        teacher = torch.randn(16, TEACHER, generator=generator)
        total = torch.stack(list(method.objective(student(teacher), teacher).values())).sum()
        gradients = torch.autograd.grad(total, weights)
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                weight -= 0.02 * gradient
        method.update(student(teacher).detach(), teacher)
        losses.append(float(total.detach()))
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])
