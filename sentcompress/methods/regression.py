"""The frame of DistilCSE's baselines: M s is to equal t, row by row, and M is thrown away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from sentcompress.methods.base import Method, Shapes, linear_head, row_errors, unit
from sentcompress.methods.recipe import CODE, OURS, PAPER, Number, Option, Recipe

BASELINE_RECIPE = Recipe(
    lr=Number(2e-4, f"as ckd: {CODE} for 110M parameters"),
    epochs=Number(20, f"as ckd: {CODE}"),
    batch_size=Number(512, f"as ckd: {PAPER}"),
    schedule=Number("cosine", f"as ckd: {CODE}"),
    warmup_epochs=Number(0.1, f"as ckd: {CODE}"),
    clip=Number(1.0, f"as ckd: {CODE}"),
    betas=Number("0.9 0.98", f"as ckd: {CODE}"),
    eval_every=Number(125, f"as ckd: {CODE}"),
    patience=Number(3, f"as ckd: {CODE}"),
    dropout=Number(0.0, f"{OURS}: the target of a sentence is one fixed vector, and noise only blurs it"),
)
REGRESSION_OPTIONS: Mapping[str, Option] = {
    "head": Option(
        "linear",
        "compare M s, or s itself (none; needs a student as wide as the teacher)",
        f"{PAPER}: linear",
        choices=("linear", "none"),
    ),
    "normalise": Option(False, "scale both vectors to length one first", f"{PAPER}: false"),
    "head_start": Option(
        "random",
        "where M starts: torch's random values or the unit matrix",
        f"{CODE}: random",
        choices=("random", "identity"),
    ),
    "reduction": Option(
        "sum",
        "sum or mean over the dimensions; over the batch it is always the mean",
        OURS,
        choices=("sum", "mean"),
    ),
}


class Regression(Method):
    """What `mse`, `pkd` and `metakd` share: the head M and the squared distance of each row."""

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        linear = self.settings["head"] == "linear"
        if not linear and shapes.student != shapes.teacher:
            raise ValueError(
                f"head=none needs a student as wide as the teacher, not {shapes.student} and {shapes.teacher}"
            )
        self.head: nn.Module = (
            linear_head(shapes.student, shapes.teacher, self.settings["head_start"]) if linear else nn.Identity()
        )

    def errors(self, student: Tensor, teacher: Tensor) -> Tensor:
        """|M s - t|^2 of each row: [B, D_s], [B, D_t] -> [B]."""
        prediction, target = self.predict(student), self.target(teacher)
        if self.settings["normalise"]:
            prediction, target = unit(prediction), unit(target)
        return row_errors(prediction, target, self.settings["reduction"])

    def predict(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, D_t]."""
        return self.head(student)  # type: ignore[no-any-return]

    def has_target(self) -> bool:
        return isinstance(self.head, nn.Identity)
