"""MSE: plain regression on the teacher's vector, the baseline called KD in the papers."""

from __future__ import annotations

from torch import Tensor

from sentcompress.methods.regression import BASELINE_RECIPE, REGRESSION_OPTIONS, Regression


class MSE(Regression):
    """Match the teacher's vector itself (the KD row of DistilCSE's tables, in the frame of `ckd`).

    loss = mean over the batch of |M s - t|^2 with M: Linear(D_s -> D_t, bias), which is thrown away: the student's
    own pooled vector is the embedding, and dev scores that one. The papers give no formula beyond "MSE". Ours to
    add: `head=none` compares s and t directly, where the widths agree; `normalise=true` compares their directions.
    """

    title = "Mean squared error to the teacher (KD)"
    paper = "baseline of Gao et al. 2021, DistilCSE, and of Zhao et al. 2022"
    link = "https://arxiv.org/abs/2112.05638"
    equation = "mean_B |M s - t|^2"
    deployed = "the student's own pooled vector; the head M is thrown away"
    stage = "distill"
    needs = frozenset({"teacher"})
    contrastive = False
    recipe = BASELINE_RECIPE
    options = REGRESSION_OPTIONS

    def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        return {"mse": self.errors(student, teacher).mean()}
