"""CKD: contrastive distillation with a queue of teacher vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from sentcompress.methods.base import Shapes, unit
from sentcompress.methods.heads import DiscardedHeadMethod
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Hyperparameters, Number, Option, Sized
from sentcompress.methods.queue_logsumexp import LONGEST_QUEUE, queue_logsumexp

DETAILS = f"{PAPER}, section 4.2"
RUN = f"{CODE}, ckd_contrastive_run.sh"
SCRIPT = f"{CODE}, ckd_contrastive.py"
# Between DistilCSE's students of 110M parameters and those of 52M (67M as counted here) and 14M.
SMALL = 100_000_000


def distilcse_recipe(details: str, run: str, script: str, clip: str) -> Hyperparameters:
    """The hyperparameters of DistilCSE's first stage, the same for the students of all methods.

    Args:
        details: the section of its paper.
        run, script: the files of its code for the method.
        clip: where the method's gradient clipping is from.
    """
    small = f"{details}: for 52M and 14M parameters; the limit of {SMALL // 10**6}M is {OURS}"
    return Hyperparameters(
        lr=Number(2e-4, f"{details}, and {run}: for 110M parameters", Sized(3e-4, small, "parameters", below=SMALL)),
        epochs=Number(20, f"{details}, and {run}"),
        batch_size=Number(512, f"{details}; {run}: 512 on each of 8 GPUs"),
        schedule=Number("cosine", script),
        warmup_epochs=Number(0.1, f"{script}: a tenth of one epoch"),
        weight_decay=Number(0.0, f"{details}: Adam; {script}: the default of transformers' AdamW"),
        clip=Number(1.0, clip),
        betas=Number("0.9 0.98", script),
        eval_every=Number(125, f"{details}, and {run}"),
        patience=Number(3, f"{details}, and {run}: stops after 3 epochs without a better dev score"),
    )


class CKD(DiscardedHeadMethod):
    """Contrastive distillation: find a sentence's teacher vector among many (Gao et al. 2021, DistilCSE, stage 1).

    q_i = unit(M s_i), keys = [unit(t_1) .. unit(t_B) ; queue of Q earlier ones], loss = mean over i of -log( exp(scale
    q_i k_i) / sum_j exp(scale q_i k_j) ): B - 1 + Q negatives. The queue holds the last 65,536 normalised teacher
    vectors, first in first out. It starts empty, and a batch is added after its loss is computed. M: Linear(D_s -> D_t,
    bias) is discarded: the student's own pooled vector is the embedding.

    The paper has M only if the widths differ (equation 6; else equation 5), which is the default here. The code always
    has M, but its widths always differ. `head=linear` uses M for equal widths too. M has a bias in the code and here,
    but not in the paper.

    The paper gives no temperature. The code learns scale = exp(p) from p = 1, an initial temperature of 0.37;
    `temperature=0.05` fixes it instead. In the code, each GPU has its own queue, and the teacher's dropout stays on
    during training, which is a bug; here, teacher vectors are computed without dropout.

    Paper and code pool the student like the teacher: [CLS], then a Linear and Tanh (`--pooling cls-mlp`). In the code,
    this layer is the checkpoint's own; here, it is new. Without `--pooling`, a checkpoint that names no pooling is
    pooled by the mean.
    """

    title = "Contrastive knowledge distillation, stage 1"
    paper = "Gao et al. 2021, DistilCSE: Effective Knowledge Distillation For Contrastive Sentence Embeddings"
    link = "https://arxiv.org/abs/2112.05638"
    equation = "-log exp(scale q k+) / sum_j exp(scale q k_j), q = unit(M s), keys = [batch ; queue] of unit(t)"
    deployed = "the student's own pooled vector; the head M, if there is one, is discarded"
    stage = "distill"
    needs = frozenset({"teacher"})
    contrastive = True
    recipe = distilcse_recipe(DETAILS, RUN, SCRIPT, clip=SCRIPT)
    options: ClassVar[Mapping[str, Option]] = {
        "queue": Option(
            65_536,
            "teacher vectors kept as negatives; 0 uses only the batch",
            f"{DETAILS}, and {RUN}",
            minimum=0,
            maximum=LONGEST_QUEUE,
        ),
        "temperature": Option(
            0.0,
            "fixed temperature; 0 learns it, as scale = exp(p) from p = 1",
            f"{SCRIPT}: learnt; not stated in the paper",
            minimum=1e-6,
            or_zero=True,
        ),
        "head": Option(
            "auto",
            "linear: compare M s; none: compare s itself, which must be as wide as the teacher's vector; auto: none if"
            " the widths are equal, else linear",
            f"{PAPER}, section 3.1: auto; {SCRIPT}: linear",
            choices=("auto", "linear", "none"),
        ),
        "head_start": Option(
            "random",
            "initial M: torch's random values, or the identity matrix",
            f"{SCRIPT}: random; identity is {OURS}",
            choices=("random", "identity"),
        ),
    }

    queue: Tensor

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        self.log_scale = nn.Parameter(torch.tensor(1.0)) if not self.settings["temperature"] else None
        self.register_buffer("queue", torch.zeros(self.settings["queue"], shapes.teacher))
        # Number of vectors added so far; the next goes to this index modulo the queue length.
        self.enqueued = 0

    def get_extra_state(self) -> dict[str, int]:
        return {"enqueued": self.enqueued}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.enqueued = state["enqueued"]

    @property
    def filled(self) -> Tensor:
        """The filled part of the queue: [<= Q, D_t], in no particular order."""
        return self.queue[: min(self.enqueued, len(self.queue))]

    @property
    def scale(self) -> Tensor | float:
        """1 / temperature."""
        return self.log_scale.exp() if self.log_scale is not None else 1.0 / float(self.settings["temperature"])

    def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        query, keys = unit(self.predict(student)) * self.scale, self.target(teacher)
        in_batch = query @ keys.T  # [B, B]
        # Batch and queue are handled apart: concatenating them would copy the whole queue in every step.
        total = in_batch.logsumexp(dim=1)
        if len(self.filled):
            total = torch.logaddexp(total, queue_logsumexp(query, self.filled))
        return {"contrastive": (total - in_batch.diagonal()).mean()}

    @torch.no_grad()
    def update(self, student: Tensor, teacher: Tensor) -> None:
        """Replace the oldest vectors in the queue with the batch's teacher vectors, [B, D_t]."""
        size = len(self.queue)
        self.enqueued += len(teacher)
        if size:
            newest = self.target(teacher)[-size:]
            places = torch.arange(self.enqueued - len(newest), self.enqueued, device=newest.device) % size
            self.queue[places] = newest

    def target(self, teacher: Tensor) -> Tensor:
        """[B, D_t] -> [B, D_t], rows of length one."""
        return unit(teacher)

    def watched(self) -> dict[str, float]:
        return {"temperature": 1.0 / float(torch.as_tensor(self.scale).detach()), "queue": float(len(self.filled))}
