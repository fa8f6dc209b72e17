"""What every method is: an objective over tensors, with the recipe and the switches that belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from sentcompress.methods.recipe import Option, Recipe


@dataclass(frozen=True)
class Shapes:
    """What a method is built from.

    Attributes:
        student: D_s, the width of the student's pooled vector.
        teacher: D_t, the width of the cached teacher vectors.
        tensors: what else it `needs`, by name: `pca_weight` [d, D_t] and `pca_mean` [D_t] for "pca".
    """

    student: int
    teacher: int
    tensors: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class DeployedHead:
    """The linear layer that goes into the student's folder: activation(weight x + bias)."""

    weight: Tensor
    bias: Tensor | None
    activation: str


class Method(nn.Module):
    """A way to teach a student. Heads and queues are parameters and buffers, so they train and are saved with it.

    A method sees tensors and never the model. The loop hands the tensors of a step, by name, to `objective` and,
    once the step is done, to `update`; `student` [B, D_s] and `teacher` [B, D_t] for a method that needs no more.
    """

    title: ClassVar[str]
    paper: ClassVar[str]
    link: ClassVar[str]
    equation: ClassVar[str]
    # In words: which vector is the embedding once training is over.
    deployed: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    recipe: ClassVar[Recipe]
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__()
        self.shapes = shapes
        self.settings = {**{name: option.default for name, option in self.options.items()}, **options}

    def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        """The weighted terms of the loss, by name; their sum is what is minimised. Changes nothing."""
        raise NotImplementedError

    def update(self, student: Tensor, teacher: Tensor) -> None:
        """What remains to be done with a batch after its step, such as filling a queue."""

    def predict(self, student: Tensor) -> Tensor:
        """The student's side of the comparison that is trained: [B, D_s] -> [B, K]."""
        raise NotImplementedError

    def target(self, teacher: Tensor) -> Tensor:
        """The teacher's side of it: [B, D_t] -> [B, K]."""
        return teacher

    def deploy(self, student: Tensor) -> Tensor:
        """The embedding that will be used: [B, D_s] -> [B, D]."""
        return student

    def deployed_head(self) -> DeployedHead | None:
        """The layer that makes `deploy` of the pooled vector; None when that vector itself is deployed."""
        return None

    def watched(self) -> dict[str, float]:
        """Numbers worth showing beside the loss."""
        return {}


def squared_error(prediction: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Mean over the batch of the squared distance (`sum` over dimensions), or mean over both (`mean`).

    Args:
        prediction: [B, K].
        target: [B, K].

    Returns:
        A number.
    """
    per_row = (prediction - target).square().sum(dim=1).mean()
    return per_row if reduction == "sum" else per_row / prediction.shape[1]


def linear_head(inputs: int, outputs: int, start: str) -> nn.Linear:
    """A linear layer with bias, from torch's random start or (`identity`) from the unit matrix and zero."""
    head = nn.Linear(inputs, outputs)
    if start == "identity":
        with torch.no_grad():
            nn.init.eye_(head.weight)
            nn.init.zeros_(head.bias)
    return head


def unit(vectors: Tensor) -> Tensor:
    """Rows scaled to length one: [B, D] -> [B, D]."""
    return functional.normalize(vectors, dim=1)
