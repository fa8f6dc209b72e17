"""PKD: patient distillation, which matches the pooled states of layers in addition to the sentence vector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sentcompress.methods.base import Shapes, unit
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Option
from sentcompress.methods.regression import BASELINE_RECIPE, REGRESSION_OPTIONS, Regression


class PKD(Regression):
    """Match the teacher's lower layers too (after Sun et al. 2019, Patient Knowledge Distillation).

    loss = mean |M s - t|^2 + beta mean over matched layers l and the batch of |unit(N_l s_l) - unit(t_l)|^2, where s_l
    and t_l are the pooled states of student layer l and of its teacher layer ("skip": teacher layers 2, 4, 6 for
    student layers 1, 2, 3; chosen with `teacher-embed --layers`). N_l: Linear(D_p -> D_l) if the widths differ, a case
    that the original does not have. M and N_l are discarded.

    DistilCSE's tables have a PKD row for sentence embeddings, but no formula. This form, with `mse`'s sentence term
    instead of the original's cross entropy, is ours. The original uses the [CLS] state, averages the squares over the
    dimensions and tries beta from 10 to 1000. Here the pooled state is used, and the squares are summed. The original
    leaves out the student's last layer, because its output has the other term already. Here that layer is matched too.
    DistilCSE's students are pooled as those of `ckd` (`--pooling cls-mlp`), which is not the default.
    """

    title = "Patient distillation from the teacher's layers"
    paper = "Sun et al. 2019, Patient Knowledge Distillation for BERT; baseline of Gao et al. 2021, DistilCSE"
    link = "https://arxiv.org/abs/1908.09355"
    equation = "mean_B |M s - t|^2 + beta mean_layers mean_B |unit(N_l s_l) - unit(t_l)|^2"
    deployed = "the student's own pooled vector; the heads M and N_l are discarded"
    stage = "distill"
    needs = frozenset({"teacher", "teacher-layers"})
    contrastive = False
    recipe = BASELINE_RECIPE
    options: ClassVar[Mapping[str, Option]] = {
        **REGRESSION_OPTIONS,
        "beta": Option(
            1.0,
            "weight of the layer term",
            f"{OURS}: the original tries 10 to 1000 on a mean over 768 dimensions, which is 0.01 to 1.3 here"
            f" ({PAPER}, section 4.2, and {CODE}, scripts/run_student_patience.py)",
            minimum=0,
        ),
    }

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        own, theirs = shapes.student_layer_width, shapes.teacher_layer_width
        self.layer_maps = nn.ModuleList(
            nn.Identity() if own == theirs else nn.Linear(own, theirs) for _ in range(shapes.layers)
        )

    def objective(
        self, student: Tensor, teacher: Tensor, student_layers: Tensor, teacher_layers: Tensor
    ) -> dict[str, Tensor]:
        mapped = [layer_map(student_layers[:, place]) for place, layer_map in enumerate(self.layer_maps)]
        distances = (unit(torch.stack(mapped, dim=1)) - unit(teacher_layers)).square().sum(dim=2)  # [B, L]
        return {"mse": self.errors(student, teacher).mean(), "layers": self.settings["beta"] * distances.mean()}
