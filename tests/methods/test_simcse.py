"""SimCSE's supervised loss, and the frame of stage 2, against equations in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from gradients import differences, rows

from sentcompress.methods.base import Shapes
from sentcompress.methods.simcse import SimCSE

B, N, WIDTH = 4, 2, 6


def triplets(hard: int = N, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    sizes = {"anchor": B, "positive": B, "negatives": B * hard}
    return {name: random.normal(size=(size, WIDTH)) for name, size in sizes.items()}


def tensors(views: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(view, requires_grad=True) for name, view in views.items()}


def equation(views: dict[str, np.ndarray], tau: float) -> float:
    """Every hard negative of every anchor of the batch is in each denominator."""
    losses = []
    for i, anchor in enumerate(views["anchor"]):
        positives = [math.exp(float(rows(anchor) @ rows(other)) / tau) for other in views["positive"]]
        hard = [math.exp(float(rows(anchor) @ rows(other)) / tau) for other in views["negatives"]]
        losses.append(-math.log(positives[i] / (sum(positives) + sum(hard))))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("hard", [0, 1, 3])
@pytest.mark.parametrize("tau", [0.05, 0.5])
def test_the_loss_and_its_gradients_are_the_equation(hard: int, tau: float) -> None:
    views = triplets(hard)
    given = tensors(views)
    terms = SimCSE(Shapes(WIDTH, 0, hard_negatives=hard), {"temperature": tau}).objective(**given)
    assert list(terms) == ["contrastive"]
    terms["contrastive"].backward()
    assert float(terms["contrastive"]) == pytest.approx(equation(views, tau), rel=1e-9)
    for name, tensor in given.items():
        if tensor.numel():
            assert tensor.grad is not None
            wanted = differences(lambda moved, name=name: equation({**views, name: moved}, tau), views[name])
            np.testing.assert_allclose(tensor.grad.numpy(), wanted, atol=1e-7)


def own_equation(views: dict[str, np.ndarray], tau: float, hard: int, *, cosine: bool) -> float:
    """IBKD's equation 10: all positives of the batch, and the anchor's own hard negatives."""
    losses = []
    for i in range(B):
        own = views["negatives"][i * hard : (i + 1) * hard]
        anchor, keys = views["anchor"][i], np.concatenate([views["positive"], own])
        similar = rows(keys) @ rows(anchor) if cosine else keys @ anchor
        powers = np.exp(similar / tau)
        losses.append(-math.log(powers[i] / powers.sum()))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("hard", [0, 1, 3])
@pytest.mark.parametrize("cosine", [True, False])
def test_equation_10_has_the_anchors_own_negatives(hard: int, cosine: bool) -> None:
    views = triplets(hard)
    given = tensors(views)
    options = {"temperature": 0.7, "negatives": "own", "similarity": "cosine" if cosine else "dot"}
    loss = SimCSE(Shapes(WIDTH, 0, hard_negatives=hard), options).objective(**given)["contrastive"]
    loss.backward()
    assert float(loss) == pytest.approx(own_equation(views, 0.7, hard, cosine=cosine), rel=1e-9)
    for name, tensor in given.items():
        if tensor.numel():
            assert tensor.grad is not None
            wanted = differences(
                lambda moved, name=name: own_equation({**views, name: moved}, 0.7, hard, cosine=cosine), views[name]
            )
            np.testing.assert_allclose(tensor.grad.numpy(), wanted, atol=1e-7)


def test_inner_products_with_all_hard_negatives_of_the_batch() -> None:
    views = triplets()
    loss = SimCSE(Shapes(WIDTH, 0, hard_negatives=N), {"temperature": 0.7, "similarity": "dot"}).objective(
        **tensors(views)
    )["contrastive"]
    powers = np.exp(views["anchor"] @ np.concatenate([views["positive"], views["negatives"]]).T / 0.7)
    assert float(loss) == pytest.approx(-np.log(np.diag(powers) / powers.sum(1)).mean(), rel=1e-9)


def test_the_denominator_holds_all_positives_and_all_hard_negatives_of_the_batch() -> None:
    same = {name: torch.ones(size, WIDTH) for name, size in (("anchor", B), ("positive", B), ("negatives", B * N))}
    loss = SimCSE(Shapes(WIDTH, 0, hard_negatives=N), {}).objective(**same)["contrastive"]
    # Every key is equally near, so the loss is the log of their number.
    assert math.exp(float(loss)) == pytest.approx(B + B * N, rel=1e-5)


def test_the_hard_negative_of_another_anchor_pushes_as_well() -> None:
    given = tensors(triplets())
    SimCSE(Shapes(WIDTH, 0, hard_negatives=N), {"temperature": 0.5}).objective(**given)["contrastive"].backward()
    alone = {name: view.detach()[: (N if name == "negatives" else 1)] for name, view in given.items()}
    alone["anchor"].requires_grad_()
    SimCSE(Shapes(WIDTH, 0, hard_negatives=N), {"temperature": 0.5}).objective(**alone)["contrastive"].backward()
    assert given["anchor"].grad is not None
    assert alone["anchor"].grad is not None
    assert not torch.allclose(B * given["anchor"].grad[0], alone["anchor"].grad[0])


def test_the_projection_is_trained_with_the_loss_and_deployed() -> None:
    views = triplets()
    method = SimCSE(Shapes(WIDTH, 0, hard_negatives=N), {"dim": 3}).double()
    head = method.deployed_head()
    assert head is not None
    assert head.linear.bias is not None
    assert head.activation == "Identity"
    weight, bias = head.linear.weight.detach().numpy().copy(), head.linear.bias.detach().numpy().copy()

    def projected(weight: np.ndarray) -> float:
        return equation({name: view @ weight.T + bias for name, view in views.items()}, 0.05)

    loss = method.objective(**tensors(views))["contrastive"]
    loss.backward()
    assert float(loss) == pytest.approx(projected(weight), rel=1e-9)
    assert head.linear.weight.grad is not None
    np.testing.assert_allclose(head.linear.weight.grad.numpy(), differences(projected, weight), atol=1e-6)
    deployed = method.deploy(torch.tensor(views["anchor"])).detach().numpy()
    np.testing.assert_allclose(deployed, views["anchor"] @ weight.T + bias)


def test_without_a_projection_the_vector_itself_is_deployed() -> None:
    method = SimCSE(Shapes(WIDTH, 0), {})
    vectors = torch.randn(3, WIDTH)
    assert method.deployed_head() is None
    assert torch.equal(method.deploy(vectors), vectors)
    assert list(method.parameters()) == []


def test_a_learnt_scale_begins_where_it_is_told() -> None:
    views = triplets()
    method = SimCSE(Shapes(WIDTH, 0), {"temperature": 0.0, "scale_start": 20.0}).double()
    assert method.watched()["temperature"] == pytest.approx(0.05)
    loss = method.objective(**tensors(views))["contrastive"]
    loss.backward()
    assert float(loss) == pytest.approx(equation(views, 0.05), rel=1e-6)
    assert method.log_scale is not None
    assert method.log_scale.grad is not None
    by_exponent = differences(lambda p: equation(views, float(np.exp(-p[0]))), np.array([math.log(20.0)]))
    assert float(method.log_scale.grad) == pytest.approx(by_exponent[0], rel=1e-4)


def test_a_fixed_temperature_is_the_default() -> None:
    method = SimCSE(Shapes(WIDTH, 0), {})
    assert method.log_scale is None
    assert method.watched() == {}
    assert method.scale == pytest.approx(20.0)


def replayed(width: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(9)
    return random.normal(size=(7, WIDTH)), random.normal(size=(7, width))


def test_what_is_kept_of_the_teacher_is_the_distance_of_directions() -> None:
    student, teacher = replayed(WIDTH)
    given = {**tensors(triplets()), "student": torch.tensor(student, requires_grad=True)}
    method = SimCSE(Shapes(WIDTH, WIDTH, hard_negatives=N), {"keep": 0.3})
    terms = method.objective(**given, teacher=torch.tensor(teacher))

    def kept(student: np.ndarray) -> float:
        return 0.3 * float(((rows(student) - rows(teacher)) ** 2).sum(1).mean())

    assert list(terms) == ["contrastive", "keep"]
    terms["keep"].backward()
    assert float(terms["keep"]) == pytest.approx(kept(student), rel=1e-9)
    assert given["student"].grad is not None
    np.testing.assert_allclose(given["student"].grad.numpy(), differences(kept, student), atol=1e-8)
    assert given["anchor"].grad is None


@pytest.mark.parametrize(("width", "dim"), [(9, 0), (WIDTH, 3)])
def test_of_a_teacher_of_another_width_the_cosines_are_kept(width: int, dim: int) -> None:
    student, teacher = replayed(width)
    method = SimCSE(Shapes(WIDTH, width, hard_negatives=N), {"keep": 0.3, "dim": dim}).double()
    deployed = method.deploy(torch.tensor(student)).detach().numpy()
    views = {**tensors(triplets()), "student": torch.tensor(student), "teacher": torch.tensor(teacher)}
    ours, theirs = rows(deployed) @ rows(deployed).T, rows(teacher) @ rows(teacher).T
    apart = ~np.eye(len(student), dtype=bool)
    wanted = 0.3 * ((ours - theirs)[apart] ** 2).mean()
    assert float(method.objective(**views)["keep"]) == pytest.approx(wanted, rel=1e-9)


def test_keeping_needs_a_teacher_and_its_views() -> None:
    with pytest.raises(ValueError, match="needs teacher vectors"):
        SimCSE(Shapes(WIDTH, 0), {"keep": 0.1})
    with pytest.raises(ValueError, match="views student and teacher"):
        SimCSE(Shapes(WIDTH, WIDTH), {"keep": 0.1}).objective(**tensors(triplets()))
