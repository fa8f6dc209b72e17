"""Base of DistilCSE's baselines: regression of M s on t, where M is discarded after training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from sentcompress.methods.base import row_errors, unit
from sentcompress.methods.ckd import CKD, distilcse_recipe
from sentcompress.methods.heads import DiscardedHeadMethod
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Number, Option

# The scripts for the KD row of DistilCSE's tables; `distinllation` is the file's own spelling.
RUN = f"DistilCSE's {CODE}, kd_distinllation_run.sh"
SCRIPT = f"DistilCSE's {CODE}, kd_distillation.py"
DETAILS = f"DistilCSE's {PAPER}, section 4.2"

BASELINE_RECIPE = replace(
    distilcse_recipe(DETAILS, RUN, SCRIPT, clip=f"{OURS}: as ckd; {SCRIPT}: none"),
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
    "head_start": replace(CKD.options["head_start"], source=f"{SCRIPT}: random; identity is {OURS}"),
    "reduction": Option(
        "sum",
        "sum or mean over the dimensions; always the mean over the batch",
        f"{OURS}: the squared distance, as in hpd; {SCRIPT}: mean",
        choices=("sum", "mean"),
    ),
}


class Regression(DiscardedHeadMethod):
    """Base of `mse`, `pkd` and `metakd`: the squared error of each row."""

    def errors(self, student: Tensor, teacher: Tensor) -> Tensor:
        """|M s - t|^2 of each row: [B, D_s], [B, D_t] -> [B]."""
        prediction, target = self.predict(student), self.target(teacher)
        if self.settings["normalise"]:
            prediction, target = unit(prediction), unit(target)
        return row_errors(prediction, target, self.settings["reduction"])
