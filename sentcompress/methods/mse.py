"""MSE: plain regression on the teacher's vector, the baseline called KD in the papers."""

from __future__ import annotations

from torch import Tensor

from sentcompress.methods.regression import BASELINE_RECIPE, REGRESSION_OPTIONS, Regression


class MSE(Regression):
    """Regression on the teacher's vector (the KD row of DistilCSE's tables, with the hyperparameters of `ckd`).

    loss = mean over the batch of |M s - t|^2 with M: Linear(D_s -> D_t, bias). M is discarded: the student's own pooled
    vector is the embedding, and is scored on dev.

    DistilCSE's equation 3 is the sum over the batch of MSE(s M, t), with a matrix M if the widths differ. Here M has a
    bias, as in DistilCSE's code, and is used for equal widths too. Its students are pooled as those of `ckd`
    (`--pooling cls-mlp`), which is not the default. Our additions: `head=none` compares s and t directly, if the widths
    are equal; `normalise=true` compares directions.
    """

    title = "Mean squared error to the teacher (KD)"
    paper = "baseline of Gao et al. 2021, DistilCSE, and of Zhang et al. 2023, IBKD"
    link = "https://arxiv.org/abs/2112.05638"
    equation = "mean_B |M s - t|^2"
    deployed = "the student's own pooled vector; the head M is discarded"
    stage = "distill"
    needs = frozenset({"teacher"})
    contrastive = False
    recipe = BASELINE_RECIPE
    options = REGRESSION_OPTIONS

    def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        return {"mse": self.errors(student, teacher).mean()}
