"""SimTDE against its equation in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.base import Shapes
from sentcompress.methods.simtde import SimTDE

B, M, WIDTH, HIDDEN = 4, 9, 5, 6


def numbers(teacher: int = WIDTH, teacher_hidden: int = HIDDEN) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    sizes = {
        "student": (B, WIDTH),
        "teacher": (B, teacher),
        "student_tokens": (M, HIDDEN),
        "teacher_tokens": (M, teacher_hidden),
    }
    return {name: random.normal(size=size) for name, size in sizes.items()}


def make(options: dict[str, Any], teacher: int = WIDTH, teacher_hidden: int = HIDDEN) -> SimTDE:
    return SimTDE(Shapes(WIDTH, teacher, hidden=HIDDEN, teacher_hidden=teacher_hidden), options).double()


def tensors(n: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, requires_grad=True) for name, value in n.items()}


def sentence_error(s: np.ndarray, t: np.ndarray, *, normalise: bool, reduction: str) -> float:
    squares = (rows(s) - rows(t)) ** 2 if normalise else (s - t) ** 2
    return float(squares.sum(1).mean() if reduction == "sum" else squares.mean())


def assert_is_the_loss(
    method: SimTDE,
    n: dict[str, np.ndarray],
    loss: Callable[[dict[str, np.ndarray]], float],
    *,
    terms: list[str],
    trained: tuple[str, ...],
) -> None:
    """The terms of the objective add up to `loss`, and so do the gradients of what is trained."""
    views = tensors(n)
    found = method.objective(**views)
    torch.stack(list(found.values())).sum().backward()
    assert list(found) == terms
    assert float(sum(found.values())) == pytest.approx(loss(n), rel=1e-9)
    for name in trained:
        wanted = differences(lambda moved, name=name: loss({**n, name: moved}), n[name])
        assert views[name].grad is not None
        np.testing.assert_allclose(views[name].grad.numpy(), wanted, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_and_its_gradients_are_the_equation(alpha: float, normalise: bool, reduction: str) -> None:
    n = numbers()
    method = make({"alpha": alpha, "normalise": normalise, "reduction": reduction})

    def loss(n: dict[str, np.ndarray]) -> float:
        squares = (n["student_tokens"] - n["teacher_tokens"]) ** 2
        token = squares.sum(1).mean() if reduction == "sum" else squares.mean()
        sentence = sentence_error(n["student"], n["teacher"], normalise=normalise, reduction=reduction)
        return float(alpha * token + (1 - alpha) * sentence)

    assert_is_the_loss(method, n, loss, terms=["token", "sentence"], trained=("student", "student_tokens"))


def test_the_defaults_are_the_papers() -> None:
    n = numbers()
    terms = make({}).objective(**tensors(n))
    token = ((n["student_tokens"] - n["teacher_tokens"]) ** 2).mean()
    assert float(terms["token"]) == pytest.approx(0.5 * token)
    assert float(terms["sentence"]) == pytest.approx(0.5 * ((n["student"] - n["teacher"]) ** 2).mean())


def test_weights_in_place_of_alpha() -> None:
    n = numbers()
    terms = make({"token_weight": 0.7, "alpha": 0.1}).objective(**tensors(n))
    token = ((n["student_tokens"] - n["teacher_tokens"]) ** 2).mean()
    assert float(terms["token"]) == pytest.approx(0.7 * token)
    assert float(terms["sentence"]) == pytest.approx(((n["student"] - n["teacher"]) ** 2).mean())


def test_terms_that_look_at_the_batch_are_off_by_default_and_on_by_weight() -> None:
    n = numbers()
    assert not make({}).contrastive
    assert make({"contrast": 0.1}).contrastive
    assert make({"relation": 0.1}).contrastive
    method = make({"contrast": 0.2, "temperature": 0.1, "relation": 3.0})
    assert method.contrastive
    terms = method.objective(**tensors(n))
    cosines = rows(n["student"]) @ rows(n["teacher"]).T
    powers = np.exp(cosines / 0.1)
    assert float(terms["contrast"]) == pytest.approx(0.2 * -np.log(np.diag(powers) / powers.sum(1)).mean(), rel=1e-9)
    apart = ~np.eye(B, dtype=bool)
    ours, theirs = (rows(n[name]) @ rows(n[name]).T for name in ("student", "teacher"))
    assert float(terms["relation"]) == pytest.approx(3.0 * ((ours - theirs)[apart] ** 2).mean(), rel=1e-9)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_last_states_are_compared_token_by_token_in_place_of_embeddings(reduction: str) -> None:
    n = numbers()
    n |= {f"{who}_last": n.pop(f"{who}_tokens") for who in ("student", "teacher")}
    method = make({"alpha": 0.0, "states": 0.02, "reduction": reduction})

    def loss(n: dict[str, np.ndarray]) -> float:
        squares = (n["student_last"] - n["teacher_last"]) ** 2
        states = squares.sum(1).mean() if reduction == "sum" else squares.mean()
        return float(0.02 * states + sentence_error(n["student"], n["teacher"], normalise=False, reduction=reduction))

    assert_is_the_loss(method, n, loss, terms=["sentence", "states"], trained=("student", "student_last"))


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ({}, {"teacher", "tokens"}),
        ({"states": 0.1}, {"teacher", "tokens", "last-states"}),
        ({"alpha": 0.0, "states": 0.1}, {"teacher", "last-states"}),
        ({"alpha": 0.0, "token_weight": 0.1}, {"teacher", "tokens"}),
        ({"alpha": 0.0}, {"teacher"}),
        ({"layers": 2.0}, {"teacher", "tokens", "last-layers"}),
    ],
)
def test_nothing_is_computed_that_no_term_looks_at(options: dict[str, Any], needs: set[str]) -> None:
    method = make(options, teacher_hidden=8)
    assert SimTDE.needs_with(method.settings) == needs
    maps = {"tokens": method.token_map, "last-states": method.state_map, "last-layers": method.layer_map}
    assert {name for name, module in maps.items() if list(module.parameters())} == needs - {"teacher"}


def test_states_of_a_narrow_student_go_through_a_map_that_is_thrown_away() -> None:
    n = numbers(teacher_hidden=8)
    n |= {f"{who}_last": n[f"{who}_tokens"] for who in ("student", "teacher")}
    method = make({"states": 2.0}, teacher_hidden=8)
    weight, bias = (parameter.detach().numpy() for parameter in method.state_map.parameters())
    mapped = n["student_last"] @ weight.T + bias
    terms = method.objective(**tensors(n))
    assert float(terms["states"]) == pytest.approx(2.0 * ((mapped - n["teacher_last"]) ** 2).mean(), rel=1e-9)
    assert method.deployed_head() is None


def test_equal_widths_need_no_head() -> None:
    method = make({})
    assert list(method.parameters()) == []
    assert method.deployed_head() is None


@pytest.mark.parametrize(("choice", "deployed"), [("auto", True), ("kept", True), ("thrown", False)])
def test_a_head_for_a_student_of_another_width(choice: str, deployed: bool) -> None:
    n = numbers(teacher=8)
    method = make({"head": choice}, teacher=8)
    linear = method.head.linear
    assert linear is not None
    projected = n["student"] @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()
    terms = method.objective(**tensors(n))
    assert float(terms["sentence"]) == pytest.approx(0.5 * ((projected - n["teacher"]) ** 2).mean(), rel=1e-9)
    found = method.deploy(torch.tensor(n["student"])).detach().numpy()
    np.testing.assert_allclose(found, projected if deployed else n["student"])
    assert (method.deployed_head() is not None) == deployed


def test_a_head_that_is_asked_for_is_there_for_equal_widths_too() -> None:
    assert make({"head": "kept"}).deployed_head() is not None
    thrown = make({"head": "thrown"})
    assert thrown.deployed_head() is None
    assert thrown.head.linear is not None


def test_tokens_of_another_width_go_through_a_map_that_is_thrown_away() -> None:
    n = numbers(teacher_hidden=7)
    method = make({}, teacher_hidden=7)
    weight, bias = (method.token_map.get_parameter(name).detach().numpy() for name in ("weight", "bias"))
    terms = method.objective(**tensors(n))
    wanted = 0.5 * ((n["student_tokens"] @ weight.T + bias - n["teacher_tokens"]) ** 2).mean()
    assert float(terms["token"]) == pytest.approx(wanted, rel=1e-9)
    assert method.deployed_head() is None


def with_layers(teacher_hidden: int, layers: int = 3) -> dict[str, np.ndarray]:
    """Hidden states of matched layers too: [M, K, H]."""
    random = np.random.default_rng(1)
    states = {"student_states": (M, layers, HIDDEN), "teacher_states": (M, layers, teacher_hidden)}
    return numbers(teacher_hidden=teacher_hidden) | {name: random.normal(size=size) for name, size in states.items()}


@pytest.mark.parametrize("teacher_hidden", [HIDDEN, 8])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_layers_are_compared_one_with_one(teacher_hidden: int, reduction: str) -> None:
    n = with_layers(teacher_hidden)
    method = make({"layers": 0.3, "reduction": reduction, "alpha": 0.0}, teacher_hidden=teacher_hidden)
    weight, bias = np.eye(HIDDEN), np.zeros(HIDDEN)
    if teacher_hidden != HIDDEN:
        weight, bias = (parameter.detach().numpy() for parameter in method.layer_map.parameters())
    assert method.deployed_head() is None

    def loss(n: dict[str, np.ndarray]) -> float:
        total = 0.0
        for token in range(M):
            for layer in range(3):
                squares = (n["student_states"][token, layer] @ weight.T + bias - n["teacher_states"][token, layer]) ** 2
                total += (squares.sum() if reduction == "sum" else squares.mean()) / (3 * M)
        sentence = sentence_error(n["student"], n["teacher"], normalise=False, reduction=reduction)
        return float(sentence + 0.3 * total)

    del n["student_tokens"], n["teacher_tokens"]
    trained = ("student", "student_states")
    assert_is_the_loss(method, n, loss, terms=["sentence", "layers"], trained=trained)


def kl(n: dict[str, np.ndarray]) -> float:
    """KL(softmax(t) || softmax(s)), the mean over the sentences."""
    ours, theirs = (np.exp(n[name]) / np.exp(n[name]).sum(1, keepdims=True) for name in ("student", "teacher"))
    return float((theirs * np.log(theirs / ours)).sum(1).mean())


def cosine_error(n: dict[str, np.ndarray], power: int) -> float:
    errors = []
    for i in range(B):
        for j in range(B):
            if i != j:
                ours, theirs = (rows(n[name][i]) @ rows(n[name][j]) for name in ("student", "teacher"))
                errors.append(abs(float(ours - theirs)) ** power)
    return sum(errors) / len(errors)


@pytest.mark.parametrize(
    ("name", "loss", "of_the_batch"),
    [
        ("kl", kl, False),
        ("cosine-mse", lambda n: cosine_error(n, 2), True),
        ("cosine-mae", lambda n: cosine_error(n, 1), True),
    ],
)
def test_other_sentence_losses(name: str, loss: Callable[[dict[str, np.ndarray]], float], of_the_batch: bool) -> None:
    method = make({"sentence_loss": name, "alpha": 0.25})
    assert method.contrastive is of_the_batch
    assert not method.has_target()
    assert make({}).has_target()
    n = {name: value for name, value in numbers().items() if name in ("student", "teacher")}
    assert_is_the_loss(method, n, lambda n: 0.75 * loss(n), terms=["sentence"], trained=("student",))
    assert 0.75 * loss(n) > 0.01
