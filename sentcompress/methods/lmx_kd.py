"""LMX-KD: a narrow student of full depth learns the hidden states of every layer through learnable matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sentcompress.methods.base import Shapes, squared_error, unit
from sentcompress.methods.heads import HEAD, HeadedMethod, choose_head
from sentcompress.methods.hyperparameters import OURS, PAPER, Option
from sentcompress.methods.simtde import NORMALISE, REDUCTION, SIMTDE_RECIPE


class LMXKD(HeadedMethod):
    """Match the teacher's hidden states in every layer, with one matrix per layer (baseline of Xie et al. 2023).

    loss = alpha mean over layers l of MSE(h_l W_l, g_l) + (1 - alpha) MSE(M s, t), with h_l and g_l the states of
    matched layers (embeddings included) at the real tokens, and W_l [H_s, H_t] learnt and discarded. M: Linear(D_s ->
    D_t, bias), option `head`. The paper describes the baseline in words; the form, alpha and the orthogonal
    initialisation of W are ours. The teacher runs alongside the student during training, because the states of every
    token are too large to cache.
    """

    title = "Hidden states of every layer through learnable matrices"
    paper = "baseline of Xie et al. 2023, SimTDE"
    link = "https://openreview.net/forum?id=Rnb4T-02AH"
    equation = "alpha mean_layers MSE(h W, g) + (1 - alpha) MSE(M s, t)"
    deployed = "the student's own pooled vector; the matrices and the head are discarded (head=kept: head deployed)"
    stage = "distill"
    needs = frozenset({"teacher", "states"})
    contrastive = False
    recipe = SIMTDE_RECIPE
    options: ClassVar[Mapping[str, Option]] = {
        "alpha": Option(0.5, "share of the hidden-state term, from 0 to 1", f"{OURS}: as simtde", minimum=0, maximum=1),
        "normalise": NORMALISE,
        "reduction": replace(REDUCTION, source=f"{OURS}: as simtde"),
        "head": replace(
            HEAD, default="thrown", source=f"{PAPER}, description of the baseline: a narrow student; the rest is {OURS}"
        ),
    }

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        self.head = choose_head(shapes.student, shapes.teacher, self.settings["head"])
        self.matrices = nn.Parameter(torch.empty(shapes.layers, shapes.hidden, shapes.teacher_hidden))
        for matrix in self.matrices:
            nn.init.orthogonal_(matrix)

    def objective(
        self, student: Tensor, teacher: Tensor, student_states: Tensor, teacher_states: Tensor
    ) -> dict[str, Tensor]:
        alpha, reduction = float(self.settings["alpha"]), self.settings["reduction"]
        mapped = torch.einsum("mlh,lhk->mlk", student_states, self.matrices)
        states = squared_error(mapped.flatten(0, 1), teacher_states.flatten(0, 1), reduction)
        prediction = self.predict(student)
        if self.settings["normalise"]:
            prediction, teacher = unit(prediction), unit(teacher)
        sentence = squared_error(prediction, teacher, reduction)
        return {"states": alpha * states, "sentence": (1.0 - alpha) * sentence}
