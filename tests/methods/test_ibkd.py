"""IBKD's two stages against their equations in NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.base import Shapes
from sentcompress.methods.ibkd import IBKD, IBKDFinetune

B, STUDENT, TEACHER, HIDDEN = 5, 6, 8, 4


def numbers(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    sizes = {"student": STUDENT, "teacher": TEACHER, "inputs": HIDDEN}
    return {name: random.normal(size=(B, size)) for name, size in sizes.items()}


def hsic_of(x: np.ndarray, s: np.ndarray, gamma: float, kernel: str = "rbf", less: int = 1) -> float:
    """Divided by (n - less)^2."""
    n = len(x)
    centring = np.eye(n) - 1 / n
    grams = []
    for v in (x, s):
        squares = ((v[:, None] - v[None]) ** 2).sum(-1)
        grams.append({"rbf": np.exp(-gamma * squares), "imq": (gamma + squares) ** -0.5, "linear": v @ v.T}[kernel])
    return float(np.trace(grams[0] @ centring @ grams[1] @ centring)) / (n - less) ** 2


def info_nce(queries: np.ndarray, keys: np.ndarray, tau: float) -> float:
    powers = np.exp(rows(queries) @ rows(keys).T / tau)
    return float(-np.log(np.diag(powers) / powers.sum(1)).mean())


def make(options: dict[str, Any]) -> tuple[IBKD, np.ndarray, np.ndarray]:
    method = IBKD(Shapes(STUDENT, TEACHER, hidden=HIDDEN), options).double()
    linear = method.head.linear
    assert linear is not None
    return method, linear.weight.detach().numpy(), linear.bias.detach().numpy()


@pytest.mark.parametrize("detach", [False, True])
def test_the_loss_and_its_gradients_are_the_equation(detach: bool) -> None:
    n = numbers()
    method, weight, bias = make({"temperature": 0.3, "beta": 0.7, "gamma": 0.2, "detach": detach})
    views = {name: torch.tensor(value, requires_grad=True) for name, value in n.items()}
    terms = method.objective(**views)
    torch.stack(list(terms.values())).sum().backward()

    def loss(student: np.ndarray, inputs: np.ndarray) -> float:
        bottleneck = 0.7 * hsic_of(inputs, student, 0.2)
        return info_nce(student @ weight.T + bias, n["teacher"], 0.3) + bottleneck

    assert float(sum(terms.values())) == pytest.approx(loss(n["student"], n["inputs"]), rel=1e-9)
    by_student = differences(lambda moved: loss(moved, n["inputs"]), n["student"])
    by_inputs = differences(lambda moved: loss(n["student"], moved), n["inputs"])
    assert views["student"].grad is not None
    np.testing.assert_allclose(views["student"].grad.numpy(), by_student, atol=1e-7)
    if detach:
        assert views["inputs"].grad is None
    else:
        assert views["inputs"].grad is not None
        np.testing.assert_allclose(views["inputs"].grad.numpy(), by_inputs, atol=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "imq", "linear"])
def test_the_kernel_that_is_asked_for(kernel: str) -> None:
    n = numbers()
    method, _, _ = make({"kernel": kernel, "gamma": 0.2, "beta": 0.7})
    terms = method.objective(**{name: torch.tensor(value) for name, value in n.items()})
    assert float(terms["hsic"]) == pytest.approx(0.7 * hsic_of(n["inputs"], n["student"], 0.2, kernel), rel=1e-9)


def test_the_papers_divisor() -> None:
    n = numbers()
    method, _, _ = make({"divisor": "n", "gamma": 0.2})
    terms = method.objective(**{name: torch.tensor(value) for name, value in n.items()})
    assert float(terms["hsic"]) == pytest.approx(hsic_of(n["inputs"], n["student"], 0.2, less=0), rel=1e-9)


def test_a_kernel_of_directions() -> None:
    n = numbers()
    method, _, _ = make({"normalise": True, "gamma": 0.2})
    terms = method.objective(**{name: torch.tensor(value) for name, value in n.items()})
    wanted = hsic_of(rows(n["inputs"]), rows(n["student"]), 0.2)
    assert float(terms["hsic"]) == pytest.approx(wanted, rel=1e-9)


def test_the_defaults_are_the_papers_numbers() -> None:
    n = numbers()
    method, weight, bias = make({})
    terms = method.objective(**{name: torch.tensor(value) for name, value in n.items()})
    nce = info_nce(n["student"] @ weight.T + bias, n["teacher"], 0.1)
    assert float(terms["contrastive"]) == pytest.approx(nce, rel=1e-9)
    assert float(terms["hsic"]) == pytest.approx(hsic_of(n["inputs"], n["student"], 0.5), rel=1e-9)


def test_equation_5_compares_by_a_matrix_and_no_lengths() -> None:
    n = numbers()
    method = IBKD(Shapes(STUDENT, TEACHER, hidden=HIDDEN), {"similarity": "bilinear", "temperature": 0.7}).double()
    linear = method.head.linear
    assert linear is not None
    assert linear.bias is None
    matrix = linear.weight.detach().numpy().T.copy()  # W [D_s, D_t]

    def loss(student: np.ndarray, matrix: np.ndarray) -> float:
        total = 0.0
        for i in range(B):
            similar = [math.exp(float(student[i] @ matrix @ n["teacher"][j]) / 0.7) for j in range(B)]
            total -= math.log(similar[i] / sum(similar)) / B
        return total

    views = {name: torch.tensor(value, requires_grad=True) for name, value in n.items()}
    term = method.objective(**views)["contrastive"]
    term.backward()
    assert float(term) == pytest.approx(loss(n["student"], matrix), rel=1e-9)
    assert views["student"].grad is not None
    by_student = differences(lambda moved: loss(moved, matrix), n["student"])
    np.testing.assert_allclose(views["student"].grad.numpy(), by_student, atol=1e-7)
    assert linear.weight.grad is not None
    by_matrix = differences(lambda moved: loss(n["student"], moved), matrix)
    np.testing.assert_allclose(linear.weight.grad.numpy().T, by_matrix, atol=1e-7)


def test_a_bilinear_head_that_is_kept_has_no_bias() -> None:
    options = {"similarity": "bilinear", "head": "kept"}
    method = IBKD(Shapes(STUDENT, TEACHER, hidden=HIDDEN), options).double()
    head, student = method.deployed_head(), numbers()["student"]
    assert head is not None
    assert head.linear.bias is None
    deployed = method.deploy(torch.tensor(student)).detach().numpy()
    np.testing.assert_allclose(deployed, student @ head.linear.weight.detach().numpy().T)


def test_the_kernels_means_are_logged() -> None:
    n = numbers()
    method, _, _ = make({"gamma": 0.2})
    views = {name: torch.tensor(value) for name, value in n.items()}
    assert method.watched() == {}
    method.objective(**views)
    assert method.watched() == {}
    method.update(**views)
    apart = ~np.eye(B, dtype=bool)
    for name, vectors in (("kernel_x", n["inputs"]), ("kernel_s", n["student"])):
        gram = np.exp(-0.2 * ((vectors[:, None] - vectors[None]) ** 2).sum(-1))
        assert method.watched()[name] == pytest.approx(gram[apart].mean())


def test_a_term_that_is_off_logs_no_kernels() -> None:
    method, _, _ = make({"beta": 0.0})
    method.update(**{name: torch.tensor(value) for name, value in numbers().items()})
    assert method.watched() == {}


def test_the_mean_of_a_linear_kernel_has_a_name_of_its_own() -> None:
    """No gamma moves it, and where it lies says nothing of gradients."""
    n = numbers()
    method, _, _ = make({"kernel": "linear"})
    method.update(**{name: torch.tensor(value) for name, value in n.items()})
    apart = ~np.eye(B, dtype=bool)
    assert set(method.watched()) == {"linear_x", "linear_s"}
    assert method.watched()["linear_x"] == pytest.approx((n["inputs"] @ n["inputs"].T)[apart].mean())


def test_long_vectors_are_seen_to_vanish_from_the_kernel() -> None:
    method, _, _ = make({})
    method.update(torch.randn(B, STUDENT), torch.randn(B, TEACHER), 100 * torch.randn(B, HIDDEN))
    assert method.watched()["kernel_x"] == pytest.approx(0, abs=1e-6)


def test_a_batch_of_one_is_no_division_by_zero() -> None:
    method, _, _ = make({})
    one = {name: torch.tensor(value[:1], requires_grad=True) for name, value in numbers().items()}
    terms = method.objective(**one)
    torch.stack(list(terms.values())).sum().backward()
    assert float(terms["hsic"]) == 0
    assert one["student"].grad is not None
    assert bool(one["student"].grad.isfinite().all())
    method.update(**{name: view.detach() for name, view in one.items()})
    assert method.watched() == {}  # no kernel value off the diagonal


@pytest.mark.parametrize("choice", ["thrown", "kept"])
def test_the_head_is_thrown_away_or_kept(choice: str) -> None:
    method, weight, bias = make({"head": choice})
    student = numbers()["student"]
    deployed = method.deploy(torch.tensor(student)).detach().numpy()
    np.testing.assert_allclose(deployed, student @ weight.T + bias if choice == "kept" else student)
    assert (method.deployed_head() is not None) == (choice == "kept")


def triplets(hard: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    sizes = {"anchor": B, "positive": B, "negatives": B * hard}
    vectors = {name: random.normal(size=(size, STUDENT)) for name, size in sizes.items()}
    names = {"inputs": B, "positive_inputs": B, "negative_inputs": B * hard}
    return {**vectors, **{name: random.normal(size=(size, HIDDEN)) for name, size in names.items()}}


@pytest.mark.parametrize("hard", [1, 3])
@pytest.mark.parametrize("dim", [0, 2])
def test_stage_two_is_simcse_and_the_bottleneck(hard: int, dim: int) -> None:
    n = triplets(hard)
    shapes = Shapes(STUDENT, 0, hidden=HIDDEN, hard_negatives=hard)
    method = IBKDFinetune(shapes, {"dim": dim, "beta": 0.4, "gamma": 0.2}).double()
    views = {name: torch.tensor(value, requires_grad=True) for name, value in n.items()}
    terms = method.objective(**views)
    torch.stack(list(terms.values())).sum().backward()
    head = method.deployed_head()
    if head is not None:
        assert head.linear.bias is not None
        weight, bias = head.linear.weight.detach().numpy(), head.linear.bias.detach().numpy()

    def project(vectors: np.ndarray) -> np.ndarray:
        return vectors @ weight.T + bias if dim else vectors

    def loss(n: dict[str, np.ndarray]) -> float:
        keys = project(np.concatenate([n["positive"], n["negatives"]]))
        x = np.concatenate([n["inputs"], n["positive_inputs"], n["negative_inputs"]])
        s = np.concatenate([n["anchor"], n["positive"], n["negatives"]])
        return info_nce(project(n["anchor"]), keys, 0.05) + 0.4 * hsic_of(x, s, 0.2)

    assert list(terms) == ["contrastive", "hsic"]
    assert float(sum(terms.values())) == pytest.approx(loss(n), rel=1e-9)
    for name in ("anchor", "negatives", "negative_inputs"):
        wanted = differences(lambda moved, name=name: loss({**n, name: moved}), n[name])
        assert views[name].grad is not None
        np.testing.assert_allclose(views[name].grad.numpy(), wanted, atol=1e-6)


def test_stage_two_takes_the_anchors_alone_where_only_their_inputs_are_given() -> None:
    n = triplets(1)
    method = IBKDFinetune(Shapes(STUDENT, 0, hidden=HIDDEN, hard_negatives=1), {"gamma": 0.2})
    names = ("anchor", "positive", "negatives", "inputs")
    views = {name: torch.tensor(n[name]) for name in names}
    wanted = 0.5 * hsic_of(n["inputs"], n["anchor"], 0.2)
    assert float(method.objective(**views)["hsic"]) == pytest.approx(wanted, rel=1e-9)
    method.update(**views)
    assert set(method.watched()) == {"kernel_x", "kernel_s"}


def test_stage_two_logs_the_kernels_that_are_in_its_loss() -> None:
    n = triplets(2)
    method = IBKDFinetune(Shapes(STUDENT, 0, hidden=HIDDEN, hard_negatives=2), {"gamma": 0.2})
    method.update(**{name: torch.tensor(value) for name, value in n.items()})
    x = np.concatenate([n["inputs"], n["positive_inputs"], n["negative_inputs"]])
    gram = np.exp(-0.2 * ((x[:, None] - x[None]) ** 2).sum(-1))
    assert method.watched()["kernel_x"] == pytest.approx(gram[~np.eye(len(x), dtype=bool)].mean())
