"""LRN-KD: the teacher's last layers learn its sentence vectors, without a token term."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from sentcompress.errors import UsageError
from sentcompress.methods.base import Method, Shapes, squared_error, unit
from sentcompress.methods.hyperparameters import Option
from sentcompress.methods.simtde import NORMALISE, REDUCTION, SIMTDE_RECIPE


class LRNKD(Method):
    """Match the teacher's sentence vector with its own last K layers (baseline of Xie et al. 2023).

    loss = MSE(s, t). The student is `teacher:K`, with the teacher's width and token table, so s and t have the same
    width and need no head. The paper compares it with `simtde`, which has a narrow table and a token term. It
    describes the baseline in words, as inspired by BERT-PKD and without soft labels; the loss is ours, and has no term
    for the layers in between.
    """

    title = "Last layers of the teacher, sentence term only"
    paper = "baseline of Xie et al. 2023, SimTDE"
    link = "https://openreview.net/forum?id=Rnb4T-02AH"
    equation = "MSE(s, t)"
    deployed = "the student's own pooled vector"
    stage = "distill"
    needs = frozenset({"teacher"})
    contrastive = False
    recipe = SIMTDE_RECIPE
    options: ClassVar[Mapping[str, Option]] = {"normalise": NORMALISE, "reduction": REDUCTION}

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        if shapes.student != shapes.teacher:
            raise UsageError(
                f"the student must be as wide as the teacher (teacher:3, for example), not {shapes.student} for"
                f" {shapes.teacher} dimensions",
                "choose such a student, or `method` mse, which adds a layer",
            )

    def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        if self.settings["normalise"]:
            student, teacher = unit(student), unit(teacher)
        return {"sentence": squared_error(student, teacher, self.settings["reduction"])}
