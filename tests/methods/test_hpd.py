"""HPD against its equation in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gradients import differences

from sentcompress.methods.base import Shapes
from sentcompress.methods.hpd import HPD

B, STUDENT, TEACHER, D = 7, 6, 10, 4


def make(seed: int = 0, **options: object) -> tuple[HPD, dict[str, np.ndarray]]:
    """A method with random weights, and every number that goes into its equation, in float64."""
    random = np.random.default_rng(seed)
    numbers = {
        "s": random.normal(size=(B, STUDENT)),
        "t": random.normal(size=(B, TEACHER)) + 0.5,
        "W": random.normal(size=(D, TEACHER)),
        "m": random.normal(size=TEACHER),
        "A": random.normal(size=(D, STUDENT)),
        "a": random.normal(size=D),
    }
    tensors = {"pca_weight": torch.tensor(numbers["W"]), "pca_mean": torch.tensor(numbers["m"])}
    method = HPD(Shapes(STUDENT, TEACHER, tensors), options).double()
    # The buffers are kept in float32; the equation is compared with what they hold.
    numbers["W"] = method.pca_weight.numpy()
    with torch.no_grad():
        method.head.weight.copy_(torch.tensor(numbers["A"]))
        method.head.bias.copy_(torch.tensor(numbers["a"]))
    return method, numbers


def equation(n: dict[str, np.ndarray], *, centre: bool, tanh: bool, mean: bool) -> float:
    total = 0.0
    for s, t in zip(n["s"], n["t"], strict=True):
        h = n["A"] @ s + n["a"]
        h = np.tanh(h) if tanh else h
        y = n["W"] @ (t - n["m"]) if centre else n["W"] @ t
        squares = (h - y) ** 2
        total += squares.mean() if mean else squares.sum()
    return total / len(n["s"])


@pytest.mark.parametrize("centre", [True, False])
def test_the_head_starts_as_the_projection_if_the_widths_agree(centre: bool) -> None:
    random = np.random.default_rng(0)
    tensors = {"pca_weight": torch.tensor(random.normal(size=(D, 6))), "pca_mean": torch.tensor(random.normal(size=6))}
    method = HPD(Shapes(6, 6, tensors), {"centre": centre})
    vectors = torch.tensor(random.normal(size=(B, 6)), dtype=torch.float32)
    assert float(method.objective(vectors, vectors)["mse"].detach()) == 0
    method.objective(vectors + 1, vectors)["mse"].backward()
    assert method.head.weight.grad is not None
    assert not torch.equal(HPD(Shapes(6, 6, tensors), {"head_start": "random"}).head.weight, method.pca_weight)
    assert HPD(Shapes(8, 6, tensors), {}).head.weight.shape == (D, 8)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("tanh", [True, False])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_loss_and_its_gradients_are_the_equation(centre: bool, tanh: bool, reduction: str) -> None:
    method, numbers = make(centre=centre, tanh=tanh, reduction=reduction)
    student = torch.tensor(numbers["s"], requires_grad=True)
    terms = method.objective(student, torch.tensor(numbers["t"]))
    assert list(terms) == ["mse"]
    terms["mse"].backward()
    switches = {"centre": centre, "tanh": tanh, "mean": reduction == "mean"}
    assert float(terms["mse"]) == pytest.approx(equation(numbers, **switches), rel=1e-6)
    for name, gradient in (("s", student.grad), ("A", method.head.weight.grad), ("a", method.head.bias.grad)):
        assert gradient is not None
        wanted = differences(lambda moved, name=name: equation({**numbers, name: moved}, **switches), numbers[name])
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_the_defaults_are_the_papers() -> None:
    method, numbers = make()
    loss = method.objective(torch.tensor(numbers["s"]), torch.tensor(numbers["t"]))["mse"]
    assert float(loss) == pytest.approx(equation(numbers, centre=True, tanh=False, mean=False), rel=1e-6)


@pytest.mark.parametrize("tanh", [True, False])
def test_the_head_is_what_is_deployed(tanh: bool) -> None:
    method, numbers = make(tanh=tanh)
    head = method.deployed_head()
    assert head.linear.bias is not None
    assert head.activation == ("Tanh" if tanh else "Identity")
    by_hand = numbers["s"] @ head.linear.weight.detach().numpy().T + head.linear.bias.detach().numpy()
    deployed = method.deploy(torch.tensor(numbers["s"])).detach().numpy()
    np.testing.assert_allclose(deployed, np.tanh(by_hand) if tanh else by_hand)


def test_the_projection_is_neither_trained_nor_saved() -> None:
    method, _ = make()
    assert {name for name, _ in method.named_parameters()} == {"head.weight", "head.bias"}
    assert set(method.state_dict()) == {"head.weight", "head.bias"}
