"""Base of the stage 2 objectives: triplets, an optional deployed projection, an optional distillation term."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sentcompress.errors import UsageError
from sentcompress.methods.base import Shapes, linear_head, squared_error, unit
from sentcompress.methods.heads import HeadedMethod, ProjectionHead
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Option
from sentcompress.methods.similarity import contrast, relation_error

# DistilCSE's stage 2.
NLI_RUN = f"DistilCSE's {CODE}, my_finetune_nli/nli_run.sh"
NLI = f"DistilCSE's {CODE}, my_finetune_nli/nli_finetune.py"

TRIPLET_OPTIONS: Mapping[str, Option] = {
    "temperature": Option(
        0.05,
        "fixed temperature; 0 learns it, as scale = exp(p), starting at `scale_start`",
        f"SimCSE's {PAPER}, table D.1, and IBKD's {PAPER}, table 1: 0.05; {NLI}: learnt, as scale = p",
        minimum=1e-6,
        or_zero=True,
    ),
    "scale_start": Option(20.0, "initial 1 / temperature, if it is learnt", NLI_RUN, minimum=1e-6),
    "similarity": Option(
        "cosine",
        "compare by cosines, or by inner products (dot); finetune's models return unit vectors either way",
        f"SimCSE's {PAPER}, section 4, and IBKD's {CODE}, simcse/models_sup.py: cosine; IBKD's {PAPER}, equation 10:"
        " dot",
        choices=("cosine", "dot"),
    ),
    "negatives": Option(
        "batch",
        "hard negatives in an anchor's denominator: those of the whole batch, or its own",
        f"SimCSE's {PAPER}, section 4, and IBKD's {CODE}, simcse/models_sup.py: batch; IBKD's {PAPER}, equation 10:"
        " own",
        choices=("batch", "own"),
    ),
    "dim": Option(
        0,
        "output dimension of a linear head that is deployed with the model; 0: no head",
        f"HPD's {PAPER}, +Projection-128 rows, and IBKD's {PAPER}, IBKD-128 rows: 128; none elsewhere",
        minimum=0,
    ),
    "dim_start": Option(
        "random",
        "initial head: torch's random values, or the principal axes of the student's own vectors",
        f"IBKD's {CODE}, simcse/models_sup.py: random; pca is {OURS}",
        choices=("random", "pca"),
    ),
    "keep": Option(
        0.0,
        "weight of a distillation term on unlabelled sentences with teacher vectors",
        f"{OURS}: with triplets alone, a student forgets what it has learnt",
        minimum=0,
    ),
}


class TripletMethod(HeadedMethod):
    """Base of the stage 2 objectives.

    `triplet_terms` is SimCSE's supervised loss on z = P s, with P the head of option `dim` or the identity. With
    `keep` = w > 0 it adds w times a distillation term (ours): mean |unit(P s) - unit(t)|^2 if both have the same
    width, otherwise the mean squared difference of the cosines within the batch.
    """

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        if self.settings["keep"] and not shapes.teacher:
            raise ValueError("keep needs teacher vectors of sentences")
        dim = self.settings["dim"]
        if dim > shapes.student:
            raise UsageError(f"dim={dim} exceeds the student's {shapes.student} dimensions")
        if self.settings["dim_start"] != "random" and not dim:
            raise UsageError("dim_start initialises the head of dim, but dim is 0")
        self.head = ProjectionHead(linear_head(shapes.student, dim, "random") if dim else None, kept=bool(dim))
        learnt = not self.settings["temperature"]
        start = torch.tensor(math.log(self.settings["scale_start"]))
        self.log_scale = nn.Parameter(start) if learnt else None

    @torch.no_grad()
    def start_head(self, weight: Tensor, bias: Tensor) -> None:
        """Initialise the head: weight [dim, D_s], bias [dim].

        Raises:
            ValueError: if there is no head.
        """
        linear = self.head.linear
        if linear is None:
            raise ValueError("there is no head to initialise: dim is 0")
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)

    @property
    def scale(self) -> Tensor | float:
        """1 / temperature."""
        return self.log_scale.exp() if self.log_scale is not None else 1.0 / float(self.settings["temperature"])

    def triplet_terms(
        self, anchor: Tensor, positive: Tensor, negatives: Tensor, student: Tensor | None, teacher: Tensor | None
    ) -> dict[str, Tensor]:
        """The loss terms that all stage 2 objectives share.

        Args:
            anchor, positive: [B, D_s].
            negatives: [B N, D_s], the N of each anchor side by side.
            student, teacher: [B', D_s] and [B', D_t], the sentences of the option `keep`; None without it.

        Raises:
            ValueError: if these are missing.
        """
        keys = self.predict(torch.cat([positive, negatives]))  # [B + B N, K]
        own = None
        if self.settings["negatives"] == "own":
            keys, hard = keys[: len(positive)], keys[len(positive) :]
            own = hard.reshape(len(anchor), len(hard) // len(anchor), hard.shape[1])  # [B, N, K]
        cosine = self.settings["similarity"] == "cosine"
        terms = {"contrastive": contrast(self.predict(anchor), keys, self.scale, own=own, cosine=cosine)}
        if self.settings["keep"]:
            if student is None or teacher is None:
                raise ValueError("keep needs the views student and teacher")
            terms["keep"] = self.settings["keep"] * self._distance(self.predict(student), teacher)
        return terms

    def watched(self) -> dict[str, float]:
        return {"temperature": 1.0 / float(self.log_scale.detach().exp())} if self.log_scale is not None else {}

    @staticmethod
    def _distance(prediction: Tensor, teacher: Tensor) -> Tensor:
        if prediction.shape[1] == teacher.shape[1]:
            return squared_error(unit(prediction), unit(teacher), "sum")
        return relation_error(prediction, teacher)
