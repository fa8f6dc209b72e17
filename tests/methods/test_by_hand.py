"""The equations of the papers with numbers worked out on paper: no formula is written a second time.

A temperature of 1 / log 2 makes exp(x / tau) a power of 2.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from sentcompress.methods.base import Method, Shapes
from sentcompress.methods.ckd import CKD
from sentcompress.methods.hpd import HPD
from sentcompress.methods.ibkd import IBKD, IBKDFinetune
from sentcompress.methods.lrn_kd import LRNKD
from sentcompress.methods.mse import MSE
from sentcompress.methods.simcse import SimCSE
from sentcompress.methods.simtde import SimTDE

BASE_2 = 1 / math.log(2)


def rows(*vectors: tuple[float, ...]) -> Tensor:
    return torch.tensor(vectors, dtype=torch.float32)


def column(*values: float) -> Tensor:
    return rows(*((value,) for value in values))


def terms(method: Method, **views: Tensor) -> dict[str, float]:
    return {name: float(term.detach()) for name, term in method.objective(**views).items()}


def set_weights(linear: Any, weight: list[list[float]], bias: list[float] | None = None) -> None:
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(weight))
        if bias is not None:
            linear.bias.copy_(torch.tensor(bias))


@pytest.mark.parametrize(("options", "loss"), [({}, 1.165), ({"reduction": "mean"}, 0.5825)])
def test_hpd_equation_2(options: dict[str, Any], loss: float) -> None:
    """W (t - m) is (0.6, -0.8) and (1.6, 1.2); h is (0.6, 0) and (1.1, 0); the squares are 0.64, and 0.25 + 1.44."""
    tensors = {"pca_weight": rows((0.6, 0.8), (-0.8, 0.6)), "pca_mean": torch.tensor([1.0, 1.0])}
    method = HPD(Shapes(1, 2, tensors), options)
    set_weights(method.head, [[0.5], [0.0]], [0.1, 0.0])
    found = terms(method, student=column(1, 2), teacher=rows((2, 1), (1, 3)))
    assert found == {"mse": pytest.approx(loss)}


def test_distilcse_equation_3() -> None:
    """The distances of M s and t are 1 and 2."""
    method = MSE(Shapes(1, 2), {})
    set_weights(method.head, [[1.0], [0.0]], [0.0, 0.0])
    found = terms(method, student=column(1, 2), teacher=rows((1, 1), (2, 2)))
    assert found == {"mse": pytest.approx((1 + 4) / 2)}


@pytest.mark.parametrize(
    ("student", "head"),
    [
        (rows((1, 0), (0, 2)), None),  # equation 5: of equal widths, s itself is the query
        (column(1, 0), [[1.0], [-2.0]]),  # equation 6: M s is (1, 0) and (0, 2)
    ],
)
def test_distilcse_equations_5_and_6(student: Tensor, head: list[list[float]] | None) -> None:
    """A queue of two holds the last two of three teacher vectors, which are not of length one.

    Query (1, 0): 2 for its own key, 1 for the other, 1 and 1/2 for the queue. Query (0, 1): 2 for its own, 1 for the
    other, 2 and 1 for the queue.
    """
    method = CKD(Shapes(student.shape[1], 2), {"queue": 2, "temperature": BASE_2})
    if head:
        set_weights(method.head, head, [0.0, 2.0])
    other = torch.ones_like(student)
    method.update(other[:1], rows((7, 0)))
    method.update(other, rows((0, 5), (-2, 0)))
    found = terms(method, student=student, teacher=rows((3, 0), (0, 4)))
    assert found == {"contrastive": pytest.approx((math.log(4.5 / 2) + math.log(6 / 2)) / 2)}


def test_distilcse_equation_7() -> None:
    """Anchor (1, 0): positives 2 and 1, negatives 1 and 1/2. Anchor (0, 1): positives 1 and 2, negatives 2 and 1."""
    method = SimCSE(Shapes(2, 0, hard_negatives=1), {"temperature": BASE_2})
    views = {
        "anchor": rows((2, 0), (0, 1)),
        "positive": rows((1, 0), (0, 3)),
        "negatives": rows((0, 1), (-1, 0)),
    }
    assert terms(method, **views) == {"contrastive": pytest.approx((math.log(4.5 / 2) + math.log(6 / 2)) / 2)}


@pytest.mark.parametrize(("divisor", "hsic"), [("n", 0.09375), ("n-1", 0.375)])
def test_ibkd_equations_5_to_8(divisor: str, hsic: float) -> None:
    """s W t is 1 and 3, then 2 and 6: powers of 2 and 8, 4 and 64.

    Of two sentences, K has 1/2 for X and 1/4 for S beside the diagonal of 1, so H K H has entries of 1/4 and 3/8, and
    the trace is 4 (1/4) (3/8) = 3/8. Equation 6 divides by 2^2, the released code by 1^2. beta is 2.
    """
    options = {"similarity": "bilinear", "temperature": BASE_2, "divisor": divisor, "beta": 2.0, "gamma": math.log(2)}
    method = IBKD(Shapes(2, 1, hidden=1), options)
    # W does not look at the second dimension; with it, |s - s'|^2 is 2, and |x - x'|^2 is 1.
    set_weights(method.head.linear, [[1.0, 0.0]])
    found = terms(method, student=rows((1, 0), (2, 1)), teacher=column(1, 3), inputs=column(0, 1))
    contrastive = (math.log(10 / 2) + math.log(68 / 64)) / 2
    assert found == {"contrastive": pytest.approx(contrastive), "hsic": pytest.approx(2 * hsic)}


def test_ibkd_as_released_compares_directions() -> None:
    """M s is (3, 0) and (0, 2), the teacher's vectors lie along it: 2 for its own, 1 for the other."""
    method = IBKD(Shapes(1, 2, hidden=1), {"temperature": BASE_2, "beta": 0.0})
    set_weights(method.head.linear, [[3.0], [-2.0]], [0.0, 2.0])
    views = {"student": column(1, 0), "teacher": rows((5, 0), (0, 7)), "inputs": column(0, 1)}
    assert terms(method, **views) == {"contrastive": pytest.approx(math.log(3 / 2)), "hsic": 0}


@pytest.mark.parametrize(
    ("negatives", "shares"),
    [
        # Anchor 1: positives 2 and 2, its negative 1. Anchor 2: positives 4 and 4, its negative 16.
        ("own", (5 / 2, 24 / 4)),
        # The other's negative too: 4, and 1.
        ("batch", (9 / 2, 25 / 4)),
    ],
)
def test_ibkd_equation_10(negatives: str, shares: tuple[float, float]) -> None:
    options = {"similarity": "dot", "negatives": negatives, "temperature": BASE_2, "beta": 0.0}
    method = IBKDFinetune(Shapes(1, 0, hidden=1, hard_negatives=1), options)
    views = {"anchor": column(1, 2), "positive": column(1, 1), "negatives": column(0, 2), "inputs": column(0, 1)}
    found = terms(method, **views)
    assert found == {"contrastive": pytest.approx(sum(map(math.log, shares)) / 2), "hsic": 0}


def test_simtde_equations_3_to_5() -> None:
    """The squares of the tokens are 1, 0, 0 and 4, those of the sentence 1 and 4; alpha is 0.5."""
    method = SimTDE(Shapes(2, 2, hidden=2, teacher_hidden=2), {})
    views = {
        "student": rows((1, 2)),
        "teacher": rows((2, 4)),
        "student_tokens": rows((1, 0), (0, 1)),
        "teacher_tokens": rows((0, 0), (0, 3)),
    }
    assert terms(method, **views) == {"token": pytest.approx(0.625), "sentence": pytest.approx(1.25)}
    del views["student_tokens"], views["teacher_tokens"]
    assert terms(LRNKD(Shapes(2, 2), {}), **views) == {"sentence": pytest.approx(2.5)}
