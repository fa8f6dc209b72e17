"""A linear layer between the student's vector and what it is compared with, thrown away or deployed."""

from __future__ import annotations

from torch import Tensor, nn

from sentcompress.methods.base import DeployedHead, Method, linear_head
from sentcompress.methods.hyperparameters import OURS, Option

HEAD = Option(
    "auto",
    "a linear layer after the student: none where its vectors are as wide as the teacher's, else kept (auto); kept:"
    " learnt and deployed, vectors as wide as the teacher's; thrown: learnt and thrown away",
    f"{OURS}: vectors stay as wide as the teacher's",
    choices=("auto", "kept", "thrown"),
)


class ProjectionHead(nn.Module):
    """Nothing, or Linear(D -> K, bias), with the knowledge of whether it is part of the deployed student."""

    def __init__(self, linear: nn.Linear | None, *, kept: bool) -> None:
        super().__init__()
        self.linear = linear
        self.kept = kept

    def forward(self, vectors: Tensor) -> Tensor:
        """[B, D] -> [B, K]."""
        return vectors if self.linear is None else self.linear(vectors)


def choose_head(student: int, teacher: int, choice: str) -> ProjectionHead:
    """The head that option `head` asks for between vectors of these widths."""
    if choice == "auto" and student == teacher:
        return ProjectionHead(None, kept=False)
    return ProjectionHead(linear_head(student, teacher, "random"), kept=choice != "thrown")


class HeadedMethod(Method):
    """A method that compares the output of `head`, which its __init__ has to set."""

    head: ProjectionHead

    def predict(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, K]."""
        return self.head(student)  # type: ignore[no-any-return]

    def deploy(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, K] with a head that is kept, [B, D_s] without."""
        return self.predict(student) if self.head.kept else student

    def has_target(self) -> bool:
        return self.head.linear is None or self.head.kept

    def deployed_head(self) -> DeployedHead | None:
        linear = self.head.linear
        return DeployedHead(linear.weight, linear.bias, "Identity") if linear is not None and self.head.kept else None
