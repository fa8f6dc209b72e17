"""IBKD: contrastive distillation with an information bottleneck, and its stage 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from sentcompress.methods.base import Shapes
from sentcompress.methods.bottleneck import Bottleneck, bottleneck_options
from sentcompress.methods.heads import HEAD, HeadedMethod, choose_head
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, TRAINER, Hyperparameters, Number, Option
from sentcompress.methods.similarity import contrast
from sentcompress.methods.triplets import TRIPLET_OPTIONS, TripletMethod

TABLE = f"{PAPER}, table 1"
SETUP = f"{PAPER}, section 4.3"
UNSUP = f"{CODE}, run_unsup.sh"
UNSUP_MODEL = f"{CODE}, simcse/models_unsup.py"
SUP = f"{CODE}, run_sup.sh"
SUP_MODEL = f"{CODE}, simcse/models_sup.py"


class IBKD(HeadedMethod):
    """Contrastive distillation with an information bottleneck, stage 1 (Zhang et al. 2023).

    loss = InfoNCE(M s, t) with cosines / tau and the batch's other teacher vectors as negatives, + beta HSIC(X, S). X:
    the mean over the real tokens of a low layer of the student. S = s: the student's own pooled vector, not normalised.
    HSIC = tr(K_X H K_S H) / (n - 1)^2. M: Linear(D_s -> D_t, bias).

    The paper calls X the input and does not say which vector stands for it. X, S and the gradient through X are those
    of the code. In the paper, equation 8 negates the loss of equation 5 once more; here, the loss is minimised, as in
    the code. In equation 5, the positive is added to a sum over the whole batch; here, the sum is over the other
    samples, as in the paper's text and the code.

    Other differences: the paper compares by exp(s' W t / tau), with unscaled s and t and a matrix W [D_s, D_t] in place
    of M (`similarity=bilinear`), the code by cosines of M s and t. The paper divides HSIC by n^2 (`divisor=n`), and its
    RBF lacks the minus and the square. The code's scripts have tau 1.0, beta 0.2 and gamma 1.0, and its linear kernel
    is on unit vectors (`kernel=linear normalise=true`). The code evaluates s, but its dev scores during training are
    those of M s. Here both are of s, or of M s with `head=kept`.
    As released, stage 1 of the code does not run: it calls `corr_loss_new`, which its file lacks. We read it as
    `corr_loss`, with the RBF kernel.

    If `kernel_x` or `kernel_s` in the log is near 0, the kernel treats all sentences as unrelated, and the HSIC term
    has no gradient. A smaller gamma, `kernel=imq` or `normalise=true` helps.
    """

    title = "Information bottleneck distillation, stage 1"
    paper = "Zhang et al. 2023, Text Representation Distillation via Information Bottleneck Principle"
    link = "https://arxiv.org/abs/2311.05472"
    equation = "-log exp(cos(M s, t) / tau) / sum_j exp(cos(M s, t_j) / tau) + beta tr(K_X H K_S H) / (n - 1)^2"
    deployed = "the student's own pooled vector; the head M is discarded, or deployed with head=kept"
    stage = "distill"
    needs = frozenset({"teacher", "inputs"})
    contrastive = True
    recipe = Hyperparameters(
        lr=Number(1e-4, f"{TABLE}, and {UNSUP}"),
        epochs=Number(10, f"{TABLE} (3 for dense retrieval), and {UNSUP}"),
        batch_size=Number(256, f"{TABLE} (128 for dense retrieval), and {UNSUP}"),
        schedule=Number("linear", f"{UNSUP}: {TRAINER}"),
        weight_decay=Number(0.0, f"{SETUP}: Adam; {UNSUP}: {TRAINER}"),
        clip=Number(1.0, f"{UNSUP}: {TRAINER}"),
        eval_every=Number(2000, UNSUP),
    )
    options: ClassVar[Mapping[str, Option]] = {
        "temperature": Option(0.1, "tau", f"{TABLE}; {UNSUP}: 1.0", minimum=1e-6),
        "similarity": Option(
            "cosine",
            "cosine of M s and t; bilinear: the inner product s' W t, with a matrix W and no bias",
            f"{UNSUP_MODEL}: cosine; {PAPER}, equation 5: bilinear",
            choices=("cosine", "bilinear"),
        ),
        **bottleneck_options(
            1.0, f"{SETUP}; {UNSUP}: 0.2", f"{SETUP}; {UNSUP}: 1.0", f"{UNSUP}; not stated in the paper"
        ),
        "head": replace(HEAD, default="thrown", source=f"{CODE}, evaluation.py: the evaluated model has no head"),
    }

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        self.cosine = self.settings["similarity"] == "cosine"
        self.head = choose_head(shapes.student, shapes.teacher, self.settings["head"], bias=self.cosine)
        self.bottleneck = Bottleneck(self.settings)

    def objective(self, student: Tensor, teacher: Tensor, inputs: Tensor) -> dict[str, Tensor]:
        scale = 1.0 / self.settings["temperature"]
        return {
            "contrastive": contrast(self.predict(student), teacher, scale, cosine=self.cosine),
            "hsic": self.bottleneck(inputs, student),
        }

    def update(self, student: Tensor, teacher: Tensor, inputs: Tensor) -> None:
        self.bottleneck.look(inputs, student)

    def watched(self) -> dict[str, float]:
        return self.bottleneck.watched()


# The views of stage 2 that form X, and those that form S.
SIDES = (("inputs", "anchor"), ("positive_inputs", "positive"), ("negative_inputs", "negatives"))


class IBKDFinetune(TripletMethod):
    """Supervised SimCSE with hard negatives and an information bottleneck, stage 2 (Zhang et al. 2023).

    loss = SimCSE's on z = s, or P s with `dim`, + beta HSIC(X, S). S = s, before P. X and S cover the anchors,
    positives and negatives together (only the anchors if the other inputs are absent). The linear head P (`dim=128`:
    the IBKD-128 rows) is deployed.

    The paper's equation 10 compares by inner products (`similarity=dot`), and its denominator has all positives but
    only the anchor's own hard negatives (`negatives=own`). The code compares by cosines and has all hard negatives of
    the batch. The code's script has lr 1e-6, batch 128 and beta 1.0. Its gamma is fixed at 0.1, its X is the last layer
    but one (`layer=-2`), and it always has P. P has a bias in the code and here, and none in equation 11. The code's
    evaluation drops P; here P is always saved and scored. For dense retrieval, the paper has lr 1e-5, batch 128, 3
    epochs, and 8 hard negatives mined with the teacher (mine-negatives).
    """

    title = "Information bottleneck distillation, stage 2"
    paper = IBKD.paper
    link = IBKD.link
    equation = "SimCSE's supervised loss + beta tr(K_X H K_S H) / (n - 1)^2"
    deployed = "the student's own pooled vector, or with dim=d the head's output: it becomes a Dense layer"
    stage = "finetune"
    needs = frozenset({"triplets", "inputs"})
    contrastive = True
    recipe = Hyperparameters(
        lr=Number(3e-5, f"{TABLE} (1e-5 for dense retrieval); {SUP}: 1e-6"),
        epochs=Number(3, f"{TABLE}, and {SUP}"),
        batch_size=Number(256, f"{TABLE}; {SUP}: 128"),
        schedule=Number("linear", f"{SUP}: {TRAINER}"),
        weight_decay=Number(0.0, f"{SETUP}: Adam; {SUP}: {TRAINER}"),
        clip=Number(1.0, f"{SUP}: {TRAINER}"),
        eval_every=Number(125, SUP),
    )
    options: ClassVar[Mapping[str, Option]] = {
        **TRIPLET_OPTIONS,
        **bottleneck_options(
            0.5,
            f"{SETUP}; {SUP}: 1.0",
            f"{SETUP}: as stage 1; {SUP_MODEL}: 0.1",
            f"{OURS}: as stage 1; {SUP_MODEL}: -2",
        ),
    }

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        self.bottleneck = Bottleneck(self.settings)

    def objective(
        self,
        anchor: Tensor,
        positive: Tensor,
        negatives: Tensor,
        inputs: Tensor,
        positive_inputs: Tensor | None = None,
        negative_inputs: Tensor | None = None,
        student: Tensor | None = None,
        teacher: Tensor | None = None,
    ) -> dict[str, Tensor]:
        terms = self.triplet_terms(anchor, positive, negatives, student, teacher)
        sides = (inputs, anchor), (positive_inputs, positive), (negative_inputs, negatives)
        return {**terms, "hsic": self.bottleneck(*_joined(sides))}

    def update(self, **views: Tensor) -> None:
        self.bottleneck.look(*_joined((views.get(x), views[s]) for x, s in SIDES))

    def watched(self) -> dict[str, float]:
        return {**super().watched(), **self.bottleneck.watched()}


def _joined(sides: Iterable[tuple[Tensor | None, Tensor]]) -> tuple[Tensor, Tensor]:
    """X and S, concatenated over the sides that have inputs."""
    given = [(x, s) for x, s in sides if x is not None]
    return torch.cat([x for x, _ in given]), torch.cat([s for _, s in given])
