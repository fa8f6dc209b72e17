"""MetaKD: distillation that listens more where a sentence is typical of its domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from sentcompress.methods.base import Shapes, unit
from sentcompress.methods.hyperparameters import OURS, Option
from sentcompress.methods.regression import BASELINE_RECIPE, REGRESSION_OPTIONS, Regression


class MetaKD(Regression):
    """Weigh each sentence by its closeness to its domain's prototype (after Pan et al. 2021, Meta-KD).

    loss = mean over the batch of w_i |M s_i - t_i|^2, w_i = ((1 + cos(t_i, p_d)) / 2)^sharpness, where p_d is the
    prototype of the sentence's domain d: the mean teacher vector of that domain's sentences. A table without domains
    is one domain.

    DistilCSE's tables have a MetaKD row for sentence embeddings, without its formula: this form is ours. Of the
    original it keeps the weights by prototypes, and leaves out the meta-teacher, which is trained on labels of every
    domain, and the adversary that is to make domains alike.
    """

    title = "Distillation weighted by domain prototypes"
    paper = "Pan et al. 2021, Meta-KD; baseline of Gao et al. 2021, DistilCSE"
    link = "https://arxiv.org/abs/2012.01266"
    equation = "mean_B w |M s - t|^2, w = ((1 + cos(t, p_domain)) / 2)^sharpness"
    deployed = "the student's own pooled vector; the head M is thrown away"
    stage = "distill"
    needs = frozenset({"teacher", "domains"})
    contrastive = False
    recipe = BASELINE_RECIPE
    options: ClassVar[Mapping[str, Option]] = {
        **REGRESSION_OPTIONS,
        "sharpness": Option(
            1.0, "how fast the weight falls with the distance; 0 is mse", f"{OURS}: the weight as it is", minimum=0
        ),
    }

    prototypes: Tensor

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        # They come from the teacher's vectors and never change: no part of a checkpoint.
        self.register_buffer("prototypes", unit(shapes.tensors["prototypes"].float()), persistent=False)
        self._mean_weight: Tensor | None = None

    def weights(self, teacher: Tensor, domains: Tensor) -> Tensor:
        """From 0 to 1, for each sentence: [B, D_t], [B] -> [B]."""
        cosines = (unit(teacher) * self.prototypes[domains.long()]).sum(dim=1)
        return ((1.0 + cosines) / 2.0).clamp(min=0.0, max=1.0) ** float(self.settings["sharpness"])

    def objective(self, student: Tensor, teacher: Tensor, domains: Tensor) -> dict[str, Tensor]:
        return {"mse": (self.weights(teacher, domains) * self.errors(student, teacher)).mean()}

    @torch.no_grad()
    def update(self, student: Tensor, teacher: Tensor, domains: Tensor) -> None:
        self._mean_weight = self.weights(teacher, domains).mean()

    def watched(self) -> dict[str, float]:
        return {} if self._mean_weight is None else {"weight": float(self._mean_weight)}
