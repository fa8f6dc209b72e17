"""MetaKD against its equation in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.base import Shapes
from sentcompress.methods.metakd import MetaKD
from sentcompress.methods.mse import MSE

B, STUDENT, TEACHER, DOMAINS = 6, 5, 4, 3
random = np.random.default_rng(0)
S, T = random.normal(size=(B, STUDENT)), random.normal(size=(B, TEACHER))
D = np.array([0, 1, 2, 0, 0, 1])
PROTOTYPES = random.normal(size=(DOMAINS, TEACHER)).astype(np.float32)


def make(**options: object) -> MetaKD:
    return MetaKD(Shapes(STUDENT, TEACHER, {"prototypes": torch.tensor(PROTOTYPES)}), options).double()


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
def test_the_loss_and_its_gradient_are_the_equation(sharpness: float) -> None:
    method = make(sharpness=sharpness)
    weight, bias = (parameter.detach().numpy() for parameter in method.parameters())
    prototypes = method.prototypes.numpy()
    np.testing.assert_allclose(prototypes, rows(PROTOTYPES), rtol=1e-6)

    def equation(s: np.ndarray) -> float:
        total = 0.0
        for student, teacher, domain in zip(s, T, D, strict=True):
            closeness = (1 + rows(teacher) @ prototypes[domain]) / 2
            total += closeness**sharpness * ((weight @ student + bias - teacher) ** 2).sum()
        return float(total / B)

    student = torch.tensor(S, requires_grad=True)
    loss = method.objective(student, torch.tensor(T), torch.tensor(D))["mse"]
    loss.backward()
    assert float(loss) == pytest.approx(equation(S), rel=1e-9)
    assert student.grad is not None
    np.testing.assert_allclose(student.grad.numpy(), differences(equation, S), rtol=1e-5, atol=1e-7)


def test_the_weight_grows_with_the_closeness_to_the_own_domains_prototype() -> None:
    method = make()
    own, other = torch.tensor(PROTOTYPES[:1]).double(), torch.tensor(-PROTOTYPES[:1]).double()
    between = own + 0.5 * torch.randn(1, TEACHER, dtype=torch.float64)
    weights = method.weights(torch.cat([own, between, other]), torch.zeros(3, dtype=torch.int64))
    assert float(weights[0]) == pytest.approx(1)
    assert float(weights[0]) > float(weights[1]) > float(weights[2]) == pytest.approx(0)


def test_no_sharpness_is_mse() -> None:
    method = make(sharpness=0.0)
    plain = MSE(Shapes(STUDENT, TEACHER), {}).double()
    plain.load_state_dict(method.state_dict())
    student, teacher = torch.tensor(S), torch.tensor(T)
    assert float(method.objective(student, teacher, torch.tensor(D))["mse"]) == pytest.approx(
        float(plain.objective(student, teacher)["mse"]), rel=1e-12
    )


def test_the_mean_weight_is_logged_and_prototypes_are_not_saved() -> None:
    method = make()
    assert method.watched() == {}
    method.update(torch.tensor(S), torch.tensor(T), torch.tensor(D))
    closeness = (1 + (rows(T) * rows(PROTOTYPES[D])).sum(1)) / 2
    assert method.watched()["weight"] == pytest.approx(closeness.mean(), rel=1e-6)
    assert set(method.state_dict()) == {"head.weight", "head.bias"}
