"""What every method is: an objective over tensors, with the recipe and the switches that belong to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from sentcompress.methods.hyperparameters import Hyperparameters, Option


@dataclass(frozen=True)
class Shapes:
    """What a method is built from. A width that a method does not need stays 0.

    Attributes:
        student: D_s, the width of the student's pooled vector.
        teacher: D_t, the width of the cached teacher vectors.
        tensors: what else it `needs`, by name: `pca_weight` [d, D_t] and `pca_mean` [D_t] for "pca", `prototypes`
            [n, D_t] for "domains".
        hidden: H_s, the width of the student's hidden states.
        teacher_hidden: H_t, the width of the teacher's hidden states.
        layers: L, how many pairs of layers are matched.
        teacher_layer_width: D_l, the width of the cached pooled states of teacher layers.
        hard_negatives: N, how many of them each anchor has.
        student_layer_width: D_p, the width of the student's pooled states: D_s, but for a student with Dense layers.
    """

    student: int
    teacher: int
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    hidden: int = 0
    teacher_hidden: int = 0
    layers: int = 0
    teacher_layer_width: int = 0
    hard_negatives: int = 0
    student_layer_width: int = 0


@dataclass(frozen=True)
class DeployedHead:
    """The linear layer that goes into the student's folder: activation(weight x + bias)."""

    weight: Tensor
    bias: Tensor | None
    activation: str


class Method(nn.Module):
    """A way to teach a student. Heads and queues are parameters and buffers, so they train and are saved with it.

    A method sees tensors and never the model. The loop hands the tensors of a step, the views, to `objective` and,
    once the step is done, to `update`, each under its name. Every view can be concatenated along its first
    dimension, so that a batch may be put together from several smaller ones. B sentences, M real (unpadded) tokens:

    - always, when distilling: `student` [B, D_s]
    - "teacher": `teacher` [B, D_t], cached; "pca" adds no view, but a projection in `Shapes.tensors`
    - "inputs": `inputs` [B, H_s], the student's hidden_states[layer] averaged over real tokens; option `layer`
    - "tokens": `student_tokens` [M, H_s] and `teacher_tokens` [M, H_t], outputs of the embedding layers
    - "teacher-layers": `student_layers` [B, L, D_p] and `teacher_layers` [B, L, D_l], pooled states of matched layers
    - "states": `student_states` [M, L, H_s] and `teacher_states` [M, L, H_t], hidden states of matched layers
    - "last-states": `student_last` [M, H_s] and `teacher_last` [M, H_t], the hidden states that are pooled
    - "domains": `domains` [B], the number of each sentence's domain
    - "triplets": `anchor` [B, D_s], `positive` [B, D_s] and `negatives` [B N, D_s], where row i N + j is the j-th hard
      negative of anchor i. With "inputs" too, `inputs` are those of the anchors, `positive_inputs` and
      `negative_inputs` those of the others. `student` [B', D_s] and `teacher` [B', D_t] are then the vectors of
      ordinary sentences where a distillation term is kept (option `keep`), and left out elsewhere.
    """

    title: ClassVar[str]
    paper: ClassVar[str]
    link: ClassVar[str]
    equation: ClassVar[str]
    # In words: which vector is the embedding once training is over.
    deployed: ClassVar[str]
    # The command that it belongs to: distill, or finetune (and train-teacher).
    stage: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    # Whether the loss depends on which rows share a batch, so that none may be cut in parts that are summed up. Where
    # options decide it, the instance says so.
    contrastive: bool
    recipe: ClassVar[Hyperparameters]
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__()
        self.shapes = shapes
        self.settings = {**{name: option.default for name, option in self.options.items()}, **options}

    @classmethod
    def teacher_recipe(cls, hidden: int) -> Hyperparameters:
        """What `train-teacher` goes by, for a model whose hidden states are `hidden` wide (0: not known)."""
        return cls.recipe

    @classmethod
    def needs_with(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """What it needs with all its options given: `needs`, but where an option adds to it or takes from it."""
        return cls.needs

    # `*args: Any` beside `**views: Any` is what lets a type checker accept the named views of each method instead.
    def objective(self, *args: Any, **views: Any) -> dict[str, Tensor]:
        """The weighted terms of the loss, by name; their sum is what is minimised. Changes nothing."""
        raise NotImplementedError

    def update(self, *args: Any, **views: Any) -> None:
        """What remains to be done with a batch after its step, such as filling a queue."""

    def predict(self, student: Tensor) -> Tensor:
        """The student's side of the comparison that is trained: [B, D_s] -> [B, K]."""
        return self.deploy(student)

    def target(self, teacher: Tensor) -> Tensor:
        """The teacher's side of it: [B, D_t] -> [B, K]."""
        return teacher

    def deploy(self, student: Tensor) -> Tensor:
        """The embedding that will be used: [B, D_s] -> [B, D]."""
        return student

    def has_target(self) -> bool:
        """Whether `deploy` of a sentence is to equal its `target`, not only what a head that is thrown away makes."""
        return True

    def deployed_head(self) -> DeployedHead | None:
        """The layer that makes `deploy` of the pooled vector; None when that vector itself is deployed."""
        return None

    def watched(self) -> dict[str, float]:
        """Numbers worth showing beside the loss."""
        return {}


def row_errors(prediction: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Squared distance of each row: the `sum` of squares over the dimensions or their `mean`.

    Args:
        prediction: [B, K].
        target: [B, K].

    Returns:
        [B].
    """
    squares = (prediction - target).square()
    return squares.sum(dim=1) if reduction == "sum" else squares.mean(dim=1)


def squared_error(prediction: Tensor, target: Tensor, reduction: str) -> Tensor:
    """The mean of `row_errors` over the batch: a number."""
    return row_errors(prediction, target, reduction).mean()


def linear_head(inputs: int, outputs: int, start: str) -> nn.Linear:
    """A linear layer with bias, from torch's random start or (`identity`) from the unit matrix and zero."""
    head = nn.Linear(inputs, outputs)
    if start == "identity":
        with torch.no_grad():
            nn.init.eye_(head.weight)
            nn.init.zeros_(head.bias)
    return head


def unit(vectors: Tensor) -> Tensor:
    """Vectors scaled to length one: [..., D] -> [..., D]."""
    return functional.normalize(vectors, dim=-1)
