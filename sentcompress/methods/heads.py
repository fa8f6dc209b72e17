"""Linear heads on the student's vector, either deployed with the student or discarded after training."""

from __future__ import annotations

from torch import Tensor, nn

from sentcompress.errors import UsageError
from sentcompress.methods.base import DeployedHead, Method, linear_head
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


def discarded_head(student: int, teacher: int, choice: str, start: str) -> nn.Module:
    """A head that is discarded after training.

    Args:
        student: D_s.
        teacher: D_t.
        choice: linear; none: the identity; auto: the identity if the widths are equal, else linear.
        start: initial weights, see `linear_head`.

    Raises:
        UsageError: if there is no head between different widths.
    """
    if choice == "none" and student != teacher:
        raise UsageError(f"head=none needs a student as wide as the teacher, not {student} and {teacher}")
    if choice == "linear" or student != teacher:
        return linear_head(student, teacher, start)
    return nn.Identity()


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
        return DeployedHead(linear.weight, linear.bias, "Identity") if linear is not None and self.head.kept else None
