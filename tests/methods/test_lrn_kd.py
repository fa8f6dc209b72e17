"""LRN-KD against its equation in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.errors import UsageError
from sentcompress.methods.base import Shapes
from sentcompress.methods.lrn_kd import LRNKD


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_and_its_gradient_are_the_equation(normalise: bool, reduction: str) -> None:
    random = np.random.default_rng(0)
    s, t = random.normal(size=(5, 6)), random.normal(size=(5, 6))

    def equation(s: np.ndarray) -> float:
        squares = (rows(s) - rows(t)) ** 2 if normalise else (s - t) ** 2
        return float(squares.sum() / 5 if reduction == "sum" else squares.sum() / 30)

    method = LRNKD(Shapes(6, 6), {"normalise": normalise, "reduction": reduction})
    student = torch.tensor(s, requires_grad=True)
    loss = method.objective(student, torch.tensor(t))["sentence"]
    loss.backward()
    assert float(loss) == pytest.approx(equation(s), rel=1e-9)
    assert student.grad is not None
    np.testing.assert_allclose(student.grad.numpy(), differences(equation, s), atol=1e-8)


def test_the_student_itself_is_deployed() -> None:
    method = LRNKD(Shapes(6, 6), {})
    vectors = torch.randn(3, 6)
    assert list(method.parameters()) == []
    assert method.deployed_head() is None
    assert torch.equal(method.predict(vectors), vectors)
    assert torch.equal(method.deploy(vectors), vectors)


def test_widths_have_to_agree() -> None:
    with pytest.raises(UsageError, match="not 4 for 6"):
        LRNKD(Shapes(4, 6), {})
