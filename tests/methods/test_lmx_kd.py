"""LMX-KD against its equation in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.base import Shapes
from sentcompress.methods.lmx_kd import LMXKD

B, M, LAYERS, STUDENT, TEACHER, HIDDEN, TEACHER_HIDDEN = 4, 7, 3, 4, 6, 4, 5


def make(options: dict[str, Any]) -> LMXKD:
    shapes = Shapes(STUDENT, TEACHER, hidden=HIDDEN, teacher_hidden=TEACHER_HIDDEN, layers=LAYERS)
    return LMXKD(shapes, options).double()


def numbers() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    sizes = {
        "student": (B, STUDENT),
        "teacher": (B, TEACHER),
        "student_states": (M, LAYERS, HIDDEN),
        "teacher_states": (M, LAYERS, TEACHER_HIDDEN),
    }
    return {name: random.normal(size=size) for name, size in sizes.items()}


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_and_its_gradients_are_the_equation(normalise: bool, reduction: str) -> None:
    n = numbers()
    method = make({"alpha": 0.3, "normalise": normalise, "reduction": reduction})
    linear = method.head.linear
    assert linear is not None
    weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
    matrices = method.matrices.detach().numpy().copy()
    views = {name: torch.tensor(value, requires_grad=True) for name, value in n.items()}
    terms = method.objective(**views)
    torch.stack(list(terms.values())).sum().backward()

    def loss(n: dict[str, np.ndarray], matrices: np.ndarray = matrices) -> float:
        total = 0.0
        for layer in range(LAYERS):
            squares = (n["student_states"][:, layer] @ matrices[layer] - n["teacher_states"][:, layer]) ** 2
            total += squares.sum(1).mean() if reduction == "sum" else squares.mean()
        prediction, target = n["student"] @ weight.T + bias, n["teacher"]
        if normalise:
            prediction, target = rows(prediction), rows(target)
        squares = (prediction - target) ** 2
        sentence = squares.sum(1).mean() if reduction == "sum" else squares.mean()
        return float(0.3 * total / LAYERS + 0.7 * sentence)

    assert float(sum(terms.values())) == pytest.approx(loss(n), rel=1e-9)
    for name in ("student", "student_states"):
        wanted = differences(lambda moved, name=name: loss({**n, name: moved}), n[name])
        assert views[name].grad is not None
        np.testing.assert_allclose(views[name].grad.numpy(), wanted, atol=1e-7)
    assert method.matrices.grad is not None
    by_matrices = differences(lambda moved: loss(n, moved), matrices)
    np.testing.assert_allclose(method.matrices.grad.numpy(), by_matrices, atol=1e-7)


def test_each_layer_has_a_matrix_of_its_own_that_keeps_lengths_at_the_start() -> None:
    matrices = make({}).matrices.detach()
    for matrix in matrices:
        torch.testing.assert_close(matrix @ matrix.T, torch.eye(HIDDEN, dtype=torch.float64), rtol=0, atol=1e-5)
    assert not torch.equal(matrices[0], matrices[1])


@pytest.mark.parametrize(("choice", "deployed"), [("thrown", False), ("kept", True), ("auto", True)])
def test_the_head(choice: str, deployed: bool) -> None:
    assert (make({"head": choice}).deployed_head() is not None) == deployed
