"""What the training loop relies on, for every method alike."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from sentcompress.methods import METHODS, OBJECTIVES, method_class, objective_class
from sentcompress.methods.base import Method, Shapes

D_S, D_T, H_S, H_T, LAYERS, D_L, HARD, TOKENS, DOMAINS = 6, 8, 6, 7, 2, 9, 2, 3, 4
# Name -> how the method is built, once for each that there is.
EVERY: dict[str, Callable[[dict[str, Any]], Method]] = {
    **{name: lambda options, name=name: build(method_class(name), options) for name in METHODS},
    **{f"finetune-{name}": lambda options, name=name: build(objective_class(name), options) for name in OBJECTIVES},
}
# Settings under which a method does all that it can.
OPTIONS: dict[str, dict[str, Any]] = {
    "simtde": {"contrast": 0.5, "relation": 0.5},
    "finetune-simcse": {"keep": 0.5, "dim": 3, "temperature": 0.0},
    "finetune-ibkd": {"keep": 0.5, "dim": 3},
    "crd": {"memory": 12, "dim": 5},
    "ckd": {"queue": 12},
}


def build(method: type[Method], options: dict[str, Any]) -> Method:
    torch.manual_seed(0)
    teacher = D_S if method.__name__ == "LRNKD" else D_T
    tensors = {
        "pca_weight": torch.randn(4, teacher),
        "pca_mean": torch.randn(teacher),
        "prototypes": torch.randn(DOMAINS, teacher),
    }
    return method(Shapes(D_S, teacher, tensors, H_S, H_T, LAYERS, D_L, HARD, D_S), options)


def views_of(method: Method, size: int, seed: int) -> dict[str, Tensor]:
    """All that the needs of a method stand for, for `size` sentences of TOKENS tokens each."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    needs, views = method.needs, {}
    if "triplets" in needs:
        views = {"anchor": random(size, D_S), "positive": random(size, D_S), "negatives": random(size * HARD, D_S)}
    if "triplets" not in needs or method.settings["keep"]:
        views |= {"student": random(size, D_S), "teacher": random(size, method.shapes.teacher)}
    if "inputs" in needs:
        views["inputs"] = random(size, H_S)
    if "tokens" in needs:
        views |= {"student_tokens": random(size * TOKENS, H_S), "teacher_tokens": random(size * TOKENS, H_T)}
    if "teacher-layers" in needs:
        views |= {"student_layers": random(size, LAYERS, D_S), "teacher_layers": random(size, LAYERS, D_L)}
    if "states" in needs:
        views["student_states"] = random(size * TOKENS, LAYERS, H_S)
        views["teacher_states"] = random(size * TOKENS, LAYERS, H_T)
    if "domains" in needs:
        views["domains"] = torch.randint(DOMAINS, (size,), generator=generator)
    return views


def total(method: Method, views: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(method.objective(**views).values())).sum()


def snapshot(method: Method) -> dict[str, Any]:
    return copy.deepcopy(dict(method.state_dict()))


@pytest.mark.parametrize("name", EVERY)
def test_the_objective_takes_its_views_by_name_and_changes_nothing(name: str) -> None:
    method = EVERY[name](OPTIONS.get(name, {}))
    before = snapshot(method)
    views = views_of(method, 5, 1)
    first, second = total(method, views), total(method, views)
    assert bool(first.isfinite())
    assert first.ndim == 0
    assert float(first.detach()) == float(second.detach())
    torch.testing.assert_close(snapshot(method), before, rtol=0, atol=0)


@pytest.mark.parametrize("name", EVERY)
def test_all_that_is_learnt_gets_a_gradient(name: str) -> None:
    method = EVERY[name](OPTIONS.get(name, {}))
    views = views_of(method, 5, 1)
    learnt = [view for view in views if view.startswith(("student", "anchor", "positive", "negatives", "inputs"))]
    for view in learnt:
        views[view].requires_grad_()
    total(method, views).backward()
    for label, tensor in [*((view, views[view]) for view in learnt), *method.named_parameters()]:
        assert tensor.grad is not None, label
        assert bool(tensor.grad.isfinite().all()), label
        assert float(tensor.grad.abs().sum()) > 0, label


@pytest.mark.parametrize("name", EVERY)
def test_a_batch_of_one_gives_numbers(name: str) -> None:
    method = EVERY[name](OPTIONS.get(name, {}))
    views = {view: tensor.requires_grad_(tensor.is_floating_point()) for view, tensor in views_of(method, 1, 1).items()}
    loss = total(method, views)
    loss.backward()
    assert bool(loss.isfinite())
    assert all(bool(view.grad.isfinite().all()) for view in views.values() if view.grad is not None)
    method.update(**{view: tensor.detach() for view, tensor in views.items()})
    assert all(map(math.isfinite, method.watched().values()))


@pytest.mark.parametrize("name", EVERY)
def test_only_contrastive_losses_depend_on_which_rows_share_a_batch(name: str) -> None:
    method = EVERY[name](OPTIONS.get(name, {}))
    parts = [views_of(method, 3, seed) for seed in (1, 2)]
    whole = {view: torch.cat([part[view] for part in parts]) for view in parts[0]}
    apart = sum(float(total(method, part).detach()) for part in parts) / 2
    together = float(total(method, whole).detach())
    assert (apart != pytest.approx(together, rel=1e-4)) == method.contrastive


@pytest.mark.parametrize("name", EVERY)
def test_what_is_deployed_is_what_the_head_says(name: str) -> None:
    method = EVERY[name](OPTIONS.get(name, {}))
    vectors = torch.randn(4, D_S)
    head = method.deployed_head()
    if head is None:
        assert torch.equal(method.deploy(vectors), vectors)
        return
    activation = {"Identity": torch.nn.Identity(), "Tanh": torch.nn.Tanh()}[head.activation]
    by_hand = activation(torch.nn.functional.linear(vectors, head.linear.weight, head.linear.bias))
    torch.testing.assert_close(method.deploy(vectors), by_hand)


@pytest.mark.parametrize("name", METHODS)
def test_prediction_and_target_are_of_one_width(name: str) -> None:
    method = EVERY[name](OPTIONS.get(name, {}))
    prediction = method.predict(torch.randn(3, D_S))
    assert prediction.shape == method.target(torch.randn(3, method.shapes.teacher)).shape


@pytest.mark.parametrize("name", EVERY)
def test_a_checkpoint_holds_all_that_the_next_loss_depends_on(name: str) -> None:
    method = EVERY[name](OPTIONS.get(name, {}))
    for seed in range(3):
        views = views_of(method, 5, seed)
        method.objective(**views)
        method.update(**views)
    file = io.BytesIO()
    torch.save(method.state_dict(), file)
    file.seek(0)
    again = EVERY[name](OPTIONS.get(name, {}))
    with torch.no_grad():
        for parameter in again.parameters():
            parameter.zero_()
    again.load_state_dict(torch.load(file, weights_only=True))
    views = views_of(method, 5, 9)
    assert float(total(method, views).detach()) == float(total(again, views).detach())


HEADS = [
    (name, choice)
    for name in METHODS
    for choice in (method_class(name).options["head"].choices if "head" in method_class(name).options else [None])
]


@pytest.mark.parametrize(("name", "head"), HEADS)
def test_a_student_has_a_target_where_what_is_deployed_is_what_was_compared(name: str, head: str | None) -> None:
    """Else a cosine to the target would compare two spaces that nothing brings together."""
    torch.manual_seed(0)
    tensors = {"pca_weight": torch.randn(4, D_S), "pca_mean": torch.randn(D_S), "prototypes": torch.randn(3, D_S)}
    shapes = Shapes(D_S, D_S, tensors, D_S, D_S, LAYERS, D_S, HARD, D_S)
    method = method_class(name)(shapes, {"head": head} if head else {})
    student = torch.randn(5, D_S)
    # CRD compares neither with the other: both go through heads into a space of their own.
    compared = name != "crd" and torch.equal(method.deploy(student), method.predict(student))
    assert method.has_target() == compared
