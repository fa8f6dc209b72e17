"""Linear heads on the student's vector, either deployed with the student or discarded after training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from sentcompress.errors import UsageError
from sentcompress.methods.base import DeployedHead, Method, Shapes, linear_head
from sentcompress.methods.hyperparameters import OURS, Option

HEAD = Option(
    "auto",
    "linear layer on the student, to the teacher's width; kept: deployed with the student; thrown: discarded after"
    " training; auto: none if the widths are equal, else kept",
    f"{OURS}: vectors keep the teacher's width",
    choices=("auto", "kept", "thrown"),
)


class ProjectionHead(nn.Module):
    """The identity or Linear(D -> K); `kept` says whether it is deployed with the student."""

    def __init__(self, linear: nn.Linear | None, *, kept: bool) -> None:
        super().__init__()
        self.linear = linear
        self.kept = kept

    def forward(self, vectors: Tensor) -> Tensor:
        """[B, D] -> [B, K]."""
        return vectors if self.linear is None else self.linear(vectors)


def choose_head(student: int, teacher: int, choice: str, *, bias: bool = True) -> ProjectionHead:
    """The head from width `student` to width `teacher` that option `head` selects, with or without a bias."""
    if choice == "auto" and student == teacher:
        return ProjectionHead(None, kept=False)
    linear = linear_head(student, teacher, "random") if bias else nn.Linear(student, teacher, bias=False)
    return ProjectionHead(linear, kept=choice != "thrown")


class DiscardedHeadMethod(Method):
    """A method whose loss compares M s, where M is discarded after training.

    M is a linear layer or, with `head` none, or auto and equal widths, the identity; `head_start`: see `linear_head`.
    """

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        """Raises UsageError if `head` is none and the widths differ."""
        super().__init__(shapes, options)
        own, theirs, choice = shapes.student, shapes.teacher, self.settings["head"]
        if choice == "none" and own != theirs:
            raise UsageError(f"head=none needs a student as wide as the teacher, not {own} and {theirs}")
        linear = choice == "linear" or own != theirs
        self.head: nn.Module = linear_head(own, theirs, self.settings["head_start"]) if linear else nn.Identity()

    def predict(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, D_t]."""
        return self.head(student)  # type: ignore[no-any-return]

    def has_target(self) -> bool:
        return isinstance(self.head, nn.Identity)


class HeadedMethod(Method):
    """A method whose loss compares the output of `head`. Subclasses set it in __init__."""

    head: ProjectionHead

    def predict(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, K]."""
        return self.head(student)  # type: ignore[no-any-return]

    def deploy(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, K] if the head is kept, else [B, D_s]."""
        return self.predict(student) if self.head.kept else student

    def has_target(self) -> bool:
        return self.head.linear is None or self.head.kept

    def deployed_head(self) -> DeployedHead | None:
        linear = self.head.linear
        return DeployedHead(linear, "Identity") if linear is not None and self.head.kept else None
