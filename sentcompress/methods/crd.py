"""CRD: contrastive representation distillation, noise-contrastive estimation with a memory of negatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from sentcompress.methods.base import Method, Shapes, linear_head, unit
from sentcompress.methods.hyperparameters import CODE, PAPER, TRAINER, Hyperparameters, Number, Option
from sentcompress.methods.ibkd import TABLE, UNSUP
from sentcompress.methods.queue_logsumexp import LONGEST_QUEUE, queue_products

TRAIN = f"{CODE}, train_student.py"

# The normaliser is averaged over the pairs of this many random unit vectors: a standard error of about 0.2%.
PROBES = 1024


class CRD(Method):
    """Classify whether a student and a teacher vector belong to the same sentence (Tian, Krishnan and Isola 2019).

    u = unit(A s), v = unit(B t), both in 128 dimensions. h(u, v) = e / (e + K z), e = exp(u v / tau), is the modelled
    probability that u and v belong to one sentence; loss = mean over the batch of -log h(u, v) - sum over K memorised
    v' of log(1 - h(u, v')), and the same with u and v exchanged and K memorised u'. As in the released code, only the
    query gets a gradient: u in the first half, v in the second. A and B are discarded.

    The normaliser z: the paper has h = e / (e + K / M) with M the number of training sentences (`normaliser` 1 / M).
    Its code divides e by M times the mean of e in the first batch, so z is that mean, whatever M is. At that time the
    memory is still random. Here, z is therefore estimated once, as the mean over random directions.

    The memory differs from that of the released code. There, it has one entry per sentence, of which K are sampled, and
    an entry is updated to the mean of its old and new value. The positive is the sentence's own entry of the other
    side: random before its first visit, then a running mean. Here, the positive is the current vector of the other
    side, detached. The memory holds the last K vectors of each side, first in first out, random at the start; a batch
    is added after its step. A sentence is thus not its own negative until K others have passed, and the memory does not
    grow with the data. The code adds 1e-7 to the denominators; here, this is not needed, because logarithms are summed.
    """

    title = "Contrastive representation distillation"
    paper = "Tian, Krishnan and Isola 2019; baseline of Zhang et al. 2023, IBKD"
    link = "https://arxiv.org/abs/1910.10699"
    equation = "-log h(u, v) - sum_K log(1 - h(u, v')) + the same from v, h(u, v) = 1 / (1 + K z exp(-u v / tau))"
    deployed = "the student's own pooled vector; the heads A and B are discarded"
    stage = "distill"
    needs = frozenset({"teacher"})
    # The negatives come only from the memory.
    contrastive = False
    recipe = Hyperparameters(
        lr=Number(1e-4, f"as ibkd, whose tables include it: {TABLE}"),
        epochs=Number(10, f"as ibkd: {TABLE}"),
        batch_size=Number(256, f"as ibkd: {TABLE}"),
        schedule=Number("linear", f"as ibkd: {UNSUP}: {TRAINER}"),
        weight_decay=Number(0.0, f"as ibkd: {UNSUP}: {TRAINER}"),
        clip=Number(1.0, f"as ibkd: {UNSUP}: {TRAINER}"),
        eval_every=Number(2000, f"as ibkd: {UNSUP}"),
    )
    options: ClassVar[Mapping[str, Option]] = {
        "dim": Option(128, "output dimension of the heads A and B", TRAIN, minimum=1),
        "memory": Option(16_384, "K, negatives per side", TRAIN, minimum=1, maximum=LONGEST_QUEUE),
        "temperature": Option(0.07, "tau", TRAIN, minimum=1e-6),
        "normaliser": Option(
            0.0,
            "z; 0 uses the mean of exp(u v / tau) over random directions",
            f"{CODE}, crd/memory.py: its mean in the first batch; {PAPER}, definition of h: 1 / training sentences",
            minimum=0,
        ),
    }

    student_memory: Tensor
    teacher_memory: Tensor
    log_normaliser: Tensor

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        size, dim = self.settings["memory"], self.settings["dim"]
        self.student_head = linear_head(shapes.student, dim, "random")
        self.teacher_head = linear_head(shapes.teacher, dim, "random")
        self.register_buffer("student_memory", unit(torch.randn(size, dim)))
        self.register_buffer("teacher_memory", unit(torch.randn(size, dim)))
        given = self.settings["normaliser"]
        self.register_buffer("log_normaliser", torch.tensor(math.log(given)) if given else self._log_random_mean())
        # Number of vectors added so far; the next goes to this index modulo the memory size.
        self.entered = 0

    def get_extra_state(self) -> dict[str, int]:
        return {"entered": self.entered}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.entered = state["entered"]

    def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        u, v = self.predict(student), self.target(teacher)
        return {
            "student": self._binary(u, v.detach(), self.teacher_memory),
            "teacher": self._binary(v, u.detach(), self.student_memory),
        }

    @torch.no_grad()
    def update(self, student: Tensor, teacher: Tensor) -> None:
        """Replace the oldest vectors in both memories with those of the batch, [B, D_s] and [B, D_t]."""
        size = len(self.student_memory)
        self.entered += len(student)
        newest_student, newest_teacher = self.predict(student[-size:]), self.target(teacher[-size:])
        places = torch.arange(self.entered - len(newest_student), self.entered, device=student.device) % size
        self.student_memory[places] = newest_student
        self.teacher_memory[places] = newest_teacher

    def predict(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, dim], rows of length one."""
        return unit(self.student_head(student))

    def target(self, teacher: Tensor) -> Tensor:
        """[B, D_t] -> [B, dim], rows of length one; changes during training, because the teacher's head is trained."""
        return unit(self.teacher_head(teacher))

    def deploy(self, student: Tensor) -> Tensor:
        return student

    def has_target(self) -> bool:
        return False

    def _binary(self, queries: Tensor, positives: Tensor, memory: Tensor) -> Tensor:
        """Mean over the batch of -log h of the positive and -log(1 - h) of each memorised vector.

        With x = u v / tau and c = log(K z): -log h = softplus(c - x) and -log(1 - h) = softplus(x - c).
        """
        threshold = math.log(len(memory)) + self.log_normaliser
        positive = (queries * positives).sum(dim=1) / self.settings["temperature"]
        negative = queue_products(queries, memory) / self.settings["temperature"]  # [B, K]
        missed = functional.softplus(threshold - positive)
        return (missed + functional.softplus(negative - threshold).sum(dim=1)).mean()

    def _log_random_mean(self) -> Tensor:
        first, second = (unit(torch.randn(PROBES, self.settings["dim"])) for _ in range(2))
        # As a logarithm: exp(1 / tau) overflows float32 when tau is small.
        scores = (first @ second.T / self.settings["temperature"]).flatten()
        mean: Tensor = scores.logsumexp(dim=0) - math.log(len(scores))
        return mean
