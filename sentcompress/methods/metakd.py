"""MetaKD: distillation that gives more weight to sentences typical of their domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from sentcompress.methods.base import Shapes, unit
from sentcompress.methods.hyperparameters import OURS, Option
from sentcompress.methods.regression import BASELINE_RECIPE, REGRESSION_OPTIONS, Regression


class MetaKD(Regression):
    """Weight each sentence by its similarity to its domain's prototype (after Pan et al. 2021, Meta-KD).

    loss = mean over the batch of w_i |M s_i - t_i|^2, w_i = ((1 + cos(t_i, p_d)) / 2)^sharpness, where p_d is the
    prototype of the sentence's domain d: the mean teacher vector of that domain's sentences. A table without domains
    counts as one domain.

    DistilCSE's tables have a MetaKD row for sentence embeddings, but no formula. This form is ours. It keeps the
    prototype weights of the original. It omits the meta-teacher, which is trained on labels of every domain, and the
    adversarial term for domain-invariant features. DistilCSE's students are pooled as those of `ckd`
    (`--pooling cls-mlp`), which is not the default.
    """

    title = "Distillation weighted by domain prototypes"
    paper = "Pan et al. 2021, Meta-KD; baseline of Gao et al. 2021, DistilCSE"
    link = "https://arxiv.org/abs/2012.01266"
    equation = "mean_B w |M s - t|^2, w = ((1 + cos(t, p_domain)) / 2)^sharpness"
    deployed = "the student's own pooled vector; the head M is discarded"
    stage = "distill"
    needs = frozenset({"teacher", "domains"})
    contrastive = False
    recipe = BASELINE_RECIPE
    options: ClassVar[Mapping[str, Option]] = {
        **REGRESSION_OPTIONS,
        "sharpness": Option(1.0, "exponent of the weight; 0 gives mse", f"{OURS}: the weight unchanged", minimum=0),
    }

    prototypes: Tensor

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        # Fixed, and computed from the teacher's vectors: not part of a checkpoint.
        self.register_buffer("prototypes", unit(shapes.tensors["prototypes"].float()), persistent=False)
        self._mean_weight: Tensor | None = None

    def weights(self, teacher: Tensor, domains: Tensor) -> Tensor:
        """The weight of each sentence, from 0 to 1: [B, D_t], [B] -> [B]."""
        cosines = (unit(teacher) * self.prototypes[domains.long()]).sum(dim=1)
        return ((1.0 + cosines) / 2.0).clamp(min=0.0, max=1.0) ** float(self.settings["sharpness"])

    def objective(self, student: Tensor, teacher: Tensor, domains: Tensor) -> dict[str, Tensor]:
        return {"mse": (self.weights(teacher, domains) * self.errors(student, teacher)).mean()}

    @torch.no_grad()
    def update(self, student: Tensor, teacher: Tensor, domains: Tensor) -> None:
        self._mean_weight = self.weights(teacher, domains).mean()

    def watched(self) -> dict[str, float]:
        return {} if self._mean_weight is None else {"weight": float(self._mean_weight)}
