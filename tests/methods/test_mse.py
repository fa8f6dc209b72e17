"""MSE against its equation in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.errors import UsageError
from sentcompress.methods.base import Shapes
from sentcompress.methods.mse import MSE


def numbers(student: int = 6, teacher: int = 9) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.normal(size=(5, student)), random.normal(size=(5, teacher))


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_loss_and_its_gradients_are_the_equation(normalise: bool, reduction: str) -> None:
    s, t = numbers()
    method = MSE(Shapes(6, 9), {"normalise": normalise, "reduction": reduction}).double()
    weight, bias = (p.detach().numpy().copy() for p in method.parameters())

    def equation(s: np.ndarray) -> float:
        prediction, target = s @ weight.T + bias, t
        if normalise:
            prediction, target = rows(prediction), rows(target)
        squares = (prediction - target) ** 2
        return float(squares.sum(1).mean() if reduction == "sum" else squares.mean())

    student = torch.tensor(s, requires_grad=True)
    loss = method.objective(student, torch.tensor(t))["mse"]
    loss.backward()
    assert float(loss) == pytest.approx(equation(s), rel=1e-9)
    assert student.grad is not None
    np.testing.assert_allclose(student.grad.numpy(), differences(equation, s), rtol=1e-5, atol=1e-8)


def test_without_a_head_the_vectors_themselves_are_compared() -> None:
    s, t = numbers(9)
    method = MSE(Shapes(9, 9), {"head": "none"})
    assert list(method.parameters()) == []
    loss = method.objective(torch.tensor(s), torch.tensor(t))["mse"]
    assert float(loss) == pytest.approx(((s - t) ** 2).sum(1).mean())


def test_without_a_head_the_widths_have_to_agree() -> None:
    with pytest.raises(UsageError, match="not 6 and 9"):
        MSE(Shapes(6, 9), {"head": "none"})


def test_the_head_is_thrown_away() -> None:
    method = MSE(Shapes(6, 9), {})
    vectors = torch.randn(3, 6)
    assert method.deployed_head() is None
    assert torch.equal(method.deploy(vectors), vectors)
    assert method.predict(vectors).shape == (3, 9)
