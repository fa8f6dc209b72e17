"""PKD against its equation in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.base import Shapes
from sentcompress.methods.pkd import PKD

B, LAYERS, STUDENT, TEACHER = 4, 3, 5, 6


def shapes(teacher_layer_width: int, student_layer_width: int = STUDENT) -> Shapes:
    return Shapes(
        STUDENT,
        TEACHER,
        layers=LAYERS,
        teacher_layer_width=teacher_layer_width,
        student_layer_width=student_layer_width,
    )


def numbers(layer_width: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    sizes = {
        "student": (B, STUDENT),
        "teacher": (B, TEACHER),
        "student_layers": (B, LAYERS, STUDENT),
        "teacher_layers": (B, LAYERS, layer_width),
    }
    return {name: random.normal(size=size) for name, size in sizes.items()}


@pytest.mark.parametrize("layer_width", [STUDENT, 7])
def test_the_loss_and_its_gradients_are_the_equation(layer_width: int) -> None:
    n = numbers(layer_width)
    method = PKD(shapes(layer_width), {"beta": 2.5}).double()
    parameters = {name: tensor.detach().numpy() for name, tensor in method.named_parameters()}
    views = {name: torch.tensor(value, requires_grad=True) for name, value in n.items()}
    terms = method.objective(**views)
    torch.stack(list(terms.values())).sum().backward()

    def loss(n: dict[str, np.ndarray]) -> float:
        sentence = n["student"] @ parameters["head.weight"].T + parameters["head.bias"] - n["teacher"]
        distances = []
        for layer in range(LAYERS):
            mapped = n["student_layers"][:, layer]
            if layer_width != STUDENT:
                mapped = mapped @ parameters[f"layer_maps.{layer}.weight"].T + parameters[f"layer_maps.{layer}.bias"]
            distances.append(((rows(mapped) - rows(n["teacher_layers"][:, layer])) ** 2).sum(1))
        return float((sentence**2).sum(1).mean() + 2.5 * np.mean(distances))

    assert list(terms) == ["mse", "layers"]
    assert float(sum(terms.values())) == pytest.approx(loss(n), rel=1e-9)
    for name in ("student", "student_layers"):
        wanted = differences(lambda moved, name=name: loss({**n, name: moved}), n[name])
        assert views[name].grad is not None
        np.testing.assert_allclose(views[name].grad.numpy(), wanted, rtol=1e-5, atol=1e-7)


def test_layers_of_one_width_need_no_map() -> None:
    method = PKD(shapes(STUDENT), {})
    assert {name for name, _ in method.named_parameters()} == {"head.weight", "head.bias"}


def test_only_directions_of_layers_count() -> None:
    n = {name: torch.tensor(value) for name, value in numbers(STUDENT).items()}
    method = PKD(shapes(STUDENT), {}).double()
    longer = {**n, "teacher_layers": 7 * n["teacher_layers"], "student_layers": 0.1 * n["student_layers"]}
    assert float(method.objective(**longer)["layers"]) == pytest.approx(float(method.objective(**n)["layers"]))


def test_all_heads_are_thrown_away() -> None:
    method = PKD(shapes(9), {})
    vectors = torch.randn(2, STUDENT)
    assert method.deployed_head() is None
    assert torch.equal(method.deploy(vectors), vectors)
    assert method.predict(vectors).shape == (2, TEACHER)


def test_a_student_whose_vector_is_narrower_than_its_states() -> None:
    method = PKD(shapes(9, student_layer_width=8), {})
    states, cached = torch.randn(B, LAYERS, 8), torch.randn(B, LAYERS, 9)
    terms = method.objective(torch.randn(B, STUDENT), torch.randn(B, TEACHER), states, cached)
    assert all(term.isfinite() for term in terms.values())
    assert [tuple(one.weight.shape) for one in method.layer_maps] == [(9, 8)] * LAYERS
    assert method.predict(torch.randn(B, STUDENT)).shape == (B, TEACHER)
