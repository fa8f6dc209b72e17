"""Base class of the training objectives: a loss over tensors, with its hyperparameters and options."""

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
    """The tensor sizes that a method is built with. A width that the method does not need is 0.

    Attributes:
        student: D_s, the width of the student's pooled vector.
        teacher: D_t, the width of the cached teacher vectors.
        tensors: fixed tensors that the method `needs`, by name: `pca_weight` [d, D_t] and `pca_mean` [D_t] for "pca",
            `prototypes` [n, D_t] for "domains".
        hidden: H_s, the width of the student's hidden states.
        teacher_hidden: H_t, the width of the teacher's hidden states.
        layers: L, the number of matched layer pairs.
        teacher_layer_width: D_l, the width of the cached pooled states of teacher layers.
        hard_negatives: N, the number of hard negatives per anchor.
        student_layer_width: D_p, the width of the student's pooled states; equals D_s unless it has Dense layers.
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
    """The linear layer that is saved with the student: activation(weight x + bias)."""

    linear: nn.Linear
    activation: str


class Method(nn.Module):
    """A training objective. Heads and queues are parameters and buffers, so that checkpoints include them.

    A method sees only tensors, never the model. In each step the training loop passes the tensors, called views, by
    name to `objective` and, after the optimizer step, to `update`. All views can be concatenated along their first
    dimension, so that a batch can be assembled from smaller ones. The entries of `needs` and the views they add, for
    B sentences with M real (unpadded) tokens:

    - always, when distilling: `student` [B, D_s]
    - "teacher": `teacher` [B, D_t], cached; "pca" adds no view, but a projection in `Shapes.tensors`
    - "inputs": `inputs` [B, H_s], the student's hidden_states[layer] averaged over real tokens; option `layer`
    - "tokens": `student_tokens` [M, H_s] and `teacher_tokens` [M, H_t], outputs of the embedding layers
    - "teacher-layers": `student_layers` [B, L, D_p] and `teacher_layers` [B, L, D_l], pooled states of matched layers
    - "states": `student_states` [M, L, H_s] and `teacher_states` [M, L, H_t], hidden states of matched layers
    - "last-layers": views as for "states", but of the student's K layers, without its embedding layer, and the
      teacher's last K
    - "last-states": `student_last` [M, H_s] and `teacher_last` [M, H_t], the hidden states before pooling
    - "domains": `domains` [B], the index of each sentence's domain
    - "triplets": `anchor` [B, D_s], `positive` [B, D_s] and `negatives` [B N, D_s], where row i N + j is the j-th hard
      negative of anchor i. With "inputs", `inputs` belong to the anchors, `positive_inputs` and `negative_inputs` to
      the others. With option `keep`, `student` [B', D_s] and `teacher` [B', D_t] are the vectors of unlabelled
      sentences for the distillation term; otherwise they are absent.
    """

    title: ClassVar[str]
    paper: ClassVar[str]
    link: ClassVar[str]
    equation: ClassVar[str]
    # Which vector is the embedding after training, in words.
    deployed: ClassVar[str]
    # Its command: distill, or finetune, which also means train-teacher.
    stage: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    # Whether the loss compares rows of a batch with each other, so that a batch cannot be split and the parts added
    # up. Set per instance if it depends on options.
    contrastive: bool
    recipe: ClassVar[Hyperparameters]
    # The hyperparameters of `train-teacher`; None: `recipe`.
    teacher_recipe: ClassVar[Hyperparameters | None] = None
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        """A subclass raises UsageError if the options do not fit each other or the shapes."""
        super().__init__()
        self.shapes = shapes
        self.settings = {**{name: option.default for name, option in self.options.items()}, **options}

    @classmethod
    def needs_with(cls, options: Mapping[str, Any]) -> frozenset[str]:
        """The views and tensors that the method needs with these options; `options` has a value for every option."""
        return cls.needs

    # With both `*args: Any` and `**views: Any`, type checkers accept the named views of each subclass.
    def objective(self, *args: Any, **views: Any) -> dict[str, Tensor]:
        """The weighted loss terms by name; training minimises their sum. Has no side effects."""
        raise NotImplementedError

    def update(self, *args: Any, **views: Any) -> None:
        """Called with the batch's views after the optimizer step, for example to fill a queue."""

    def predict(self, student: Tensor) -> Tensor:
        """The student's side of the training loss: [B, D_s] -> [B, K]."""
        return self.deploy(student)

    def target(self, teacher: Tensor) -> Tensor:
        """The teacher's side of the training loss: [B, D_t] -> [B, K]."""
        return teacher

    def deploy(self, student: Tensor) -> Tensor:
        """The embedding of the trained model: [B, D_s] -> [B, D]."""
        return student

    def has_target(self) -> bool:
        """Whether `deploy` of a sentence should equal its `target`; false if only a discarded head's output should."""
        return True

    def deployed_head(self) -> DeployedHead | None:
        """The layer from the pooled vector to the embedding; None if the pooled vector is the embedding."""
        return None

    def watched(self) -> dict[str, float]:
        """Values to log next to the loss."""
        return {}


def row_errors(prediction: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Squared error of each row: the `sum` of squares over the dimensions, or their `mean`.

    Args:
        prediction: [B, K].
        target: [B, K].

    Returns:
        [B].
    """
    squares = (prediction - target).square()
    return squares.sum(dim=1) if reduction == "sum" else squares.mean(dim=1)


def squared_error(prediction: Tensor, target: Tensor, reduction: str) -> Tensor:
    """The mean of `row_errors` over the batch, a scalar."""
    return row_errors(prediction, target, reduction).mean()


def linear_head(inputs: int, outputs: int, start: str) -> nn.Linear:
    """A linear layer with bias, initialised by torch or (`identity`) with the identity matrix and zero bias."""
    head = nn.Linear(inputs, outputs)
    if start == "identity":
        with torch.no_grad():
            nn.init.eye_(head.weight)
            nn.init.zeros_(head.bias)
    return head


def unit(vectors: Tensor) -> Tensor:
    """Scale vectors to length one: [..., D] -> [..., D]."""
    return functional.normalize(vectors, dim=-1)
