"""Base of DistilCSE's baselines: regression of M s on t, where M is discarded after training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from sentcompress.methods.base import Method, Shapes, row_errors, unit
from sentcompress.methods.heads import discarded_head
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Hyperparameters, Number, Option, Sized

# The scripts for the KD row of DistilCSE's tables; `distinllation` is the file's own spelling.
RUN = f"DistilCSE's {CODE}, kd_distinllation_run.sh"
SCRIPT = f"DistilCSE's {CODE}, kd_distillation.py"
DETAILS = f"DistilCSE's {PAPER}, section 4.2"
# Between DistilCSE's students of 110M parameters and those of 52M (67M as counted here) and 14M.
SMALL = 100_000_000


def distilcse_lr(paper: str, script: str) -> Number:
    """The learning rate of DistilCSE's first stage, for students of all methods: 2e-4, or 3e-4 for smaller ones.

    Args:
        paper: whose paper it is.
        script: the script that has the former.
    """
    small = f"{paper}, section 4.2: for 52M and 14M parameters; the limit of {SMALL // 10**6}M is {OURS}"
    return Number(
        2e-4,
        f"{paper}, section 4.2, and {script}: for 110M parameters",
        Sized(3e-4, small, "parameters", below=SMALL),
    )


BASELINE_RECIPE = Hyperparameters(
    lr=distilcse_lr(f"DistilCSE's {PAPER}", RUN),
    epochs=Number(20, f"{DETAILS}, and {RUN}"),
    batch_size=Number(512, f"{DETAILS}; {RUN}: 512 on each of 8 GPUs"),
    schedule=Number("cosine", SCRIPT),
    warmup_epochs=Number(0.1, f"{SCRIPT}: a tenth of one epoch"),
    weight_decay=Number(0.0, f"{DETAILS}: Adam; {SCRIPT}: the default of transformers' AdamW"),
    clip=Number(1.0, f"{OURS}: as ckd; {SCRIPT}: none"),
    betas=Number("0.9 0.98", SCRIPT),
    eval_every=Number(125, f"{DETAILS}, and {RUN}"),
    patience=Number(3, f"{DETAILS}, and {RUN}: stops after 3 epochs without a better dev score"),
    dropout=Number(0.0, f"{OURS}: each sentence has one fixed target vector, and dropout only adds noise"),
)
REGRESSION_OPTIONS: Mapping[str, Option] = {
    "head": Option(
        "linear",
        "linear: compare M s; none: compare s itself, which must be as wide as the teacher's vector",
        f"{SCRIPT}: linear; none is {OURS}",
        choices=("linear", "none"),
    ),
    "normalise": Option(False, "scale both vectors to length one first", f"{SCRIPT}: false; true is {OURS}"),
    "head_start": Option(
        "random",
        "initial M: torch's random values, or the identity matrix",
        f"{SCRIPT}: random; identity is {OURS}",
        choices=("random", "identity"),
    ),
    "reduction": Option(
        "sum",
        "sum or mean over the dimensions; always the mean over the batch",
        f"{OURS}: the squared distance, as in hpd; {SCRIPT}: mean",
        choices=("sum", "mean"),
    ),
}


class Regression(Method):
    """Base of `mse`, `pkd` and `metakd`: the head M and the squared error of each row."""

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        self.head = discarded_head(shapes.student, shapes.teacher, self.settings["head"], self.settings["head_start"])

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
