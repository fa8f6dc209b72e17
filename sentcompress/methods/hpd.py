"""HPD: the student learns the teacher's vectors projected onto their principal components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from sentcompress.methods.base import DeployedHead, Method, Shapes, linear_head, squared_error
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, Hyperparameters, Number, Option

SETUP = f"{PAPER}, appendix A"
LOSS = f"{PAPER}, section 3"
RUN = f"{CODE}, run.sh"
TRAIN = f"{CODE}, train.py"
FIT = "the default of sentence-transformers"


class HPD(Method):
    """Match the teacher's PCA-projected vectors with a linear head on the student (Zhao et al. 2022).

    h = f(A s + a), y = W (t - m), loss = mean over the batch of |h - y|^2, where W [d, D_t] and m [D_t] are the
    components and the mean of the PCA, and f is the identity (paper) or Tanh (released code). The head becomes the
    student's Dense layer.

    The defaults are the paper's: it centres the target, has no Tanh and sums the squares of a row. The code does not
    centre, has a Tanh and averages over the dimensions. The code also scales SimCSE's vectors to length one
    (`teacher-embed --normalize`), fits the PCA on the first 40,000 of them (`fit-pca --sample 40000` samples at
    random), and drops sentences of more than 256 characters (`augment --max-length 256`). Its AdamW has no bias
    correction and an epsilon of 1e-6 (here 1e-8). For checkpoint selection, the code uses the squared error on 5,000
    held-out sentences, and the paper uses STS-B's test set. Here it is the cosine to the target on held-out sentences,
    or `--dev`.
    """

    title = "Homomorphic projective distillation"
    paper = "Zhao et al. 2022, Compressing Sentence Representation for Semantic Retrieval via HPD"
    link = "https://aclanthology.org/2022.findings-acl.64"
    equation = "mean_B |A s + a - W (t - m)|^2"
    deployed = "the head's output, d dimensions: the head becomes the student's Dense layer"
    stage = "distill"
    needs = frozenset({"teacher", "pca"})
    contrastive = False
    recipe = Hyperparameters(
        lr=Number(1e-4, f"{SETUP}, and {RUN}"),
        epochs=Number(3, f"{SETUP}; {RUN}: 5"),
        batch_size=Number(256, f"{SETUP}, and {RUN}"),
        schedule=Number("linear", f"{TRAIN}: {FIT}, after the warm-up"),
        warmup_steps=Number(1000, f"{TRAIN}; at most a tenth of all steps, which is {OURS}"),
        weight_decay=Number(0.01, f"{TRAIN}: {FIT}"),
        clip=Number(1.0, f"{TRAIN}: {FIT}"),
        eval_every=Number(None, f"{OURS}: four times per epoch; {TRAIN}: 5000"),
        dropout=Number(0.0, f"{OURS}: each sentence has one fixed target vector, and dropout only adds noise"),
    )
    options: ClassVar[Mapping[str, Option]] = {
        "centre": Option(True, "subtract the teacher's mean first", f"{LOSS}: true; {CODE}, teacher_emb.py: false"),
        "tanh": Option(False, "a Tanh after the head", f"{LOSS}: none; {TRAIN}: true"),
        "reduction": Option(
            "sum",
            "sum or mean over the dimensions; always the mean over the batch",
            f"{LOSS}: sum; {TRAIN}: mean",
            choices=("sum", "mean"),
        ),
        "head_start": Option(
            "pca",
            "initial A and a: the projection itself, if the student is as wide as the teacher; random: torch's values",
            f"{TRAIN}: random; pca is {OURS}: a student made of the teacher's layers starts near its target",
            choices=("pca", "random"),
        ),
    }

    pca_weight: Tensor
    pca_bias: Tensor

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        weight, mean = shapes.tensors["pca_weight"].float(), shapes.tensors["pca_mean"].float()
        bias = -weight @ mean if self.settings["centre"] else torch.zeros(len(weight))
        # Fixed, and read from the projection's file: not part of a checkpoint.
        self.register_buffer("pca_weight", weight, persistent=False)
        self.register_buffer("pca_bias", bias, persistent=False)
        self.head = linear_head(shapes.student, len(weight), "random")
        if self.settings["head_start"] == "pca" and shapes.student == shapes.teacher:
            with torch.no_grad():
                self.head.weight.copy_(weight)
                self.head.bias.copy_(bias)

    def objective(self, student: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        return {"mse": squared_error(self.predict(student), self.target(teacher), self.settings["reduction"])}

    def predict(self, student: Tensor) -> Tensor:
        """[B, D_s] -> [B, d]."""
        projected: Tensor = self.head(student)
        return projected.tanh() if self.settings["tanh"] else projected

    def target(self, teacher: Tensor) -> Tensor:
        """[B, D_t] -> [B, d]."""
        return torch.nn.functional.linear(teacher, self.pca_weight, self.pca_bias)

    def deploy(self, student: Tensor) -> Tensor:
        return self.predict(student)

    def deployed_head(self) -> DeployedHead:
        activation = "Tanh" if self.settings["tanh"] else "Identity"
        return DeployedHead(self.head, activation)
