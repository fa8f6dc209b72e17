"""Supervised SimCSE: trains teachers and baseline students, and is DistilCSE's stage 2."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from sentcompress.methods.ckd import SMALL
from sentcompress.methods.hyperparameters import CODE, OURS, PAPER, TRAINER, Hyperparameters, Number, Sized
from sentcompress.methods.triplets import NLI, NLI_RUN, TRIPLET_OPTIONS, TripletMethod

DISTILCSE = f"DistilCSE's {PAPER}, section 4.2"
APPENDIX = f"SimCSE's {PAPER}, appendix A"
TABLE = f"SimCSE's {PAPER}, table A.1"
RUN = f"SimCSE's {CODE}, run_sup_example.sh"

# Hidden width of BERT-large and RoBERTa-large.
LARGE = 1024
# Between DistilCSE's students of 14M parameters and of 52M (67M as counted here).
MEDIUM = 40_000_000


class SimCSE(TripletMethod):
    """Contrastive learning with in-batch positives and hard negatives (Gao, Yao and Chen 2021).

    loss = mean over i of -log( exp(cos(z_i, z+_i) / tau) / sum_j [exp(cos(z_i, z+_j) / tau) + sum over the N hard
    negatives of j of exp(cos(z_i, z-_jn) / tau)] ): the denominator has B + B N entries, including the hard negatives
    of the other anchors (`negatives=own` leaves those out). z = s, or P s with `dim`: the linear head P is deployed
    ("+Projection-128").

    The hyperparameters are those of DistilCSE's stage 2, for a student already distilled, with SimCSE's fixed
    temperature. DistilCSE's code learns the scale, starting at 20 (`temperature=0`). `train-teacher` follows SimCSE's
    paper and script instead: batch 512, 3 epochs, 32 tokens, linear decay, and learning rate 5e-5, or 1e-5 for models
    1,024 wide and more (large). HPD's baseline students have batch 256, 3 epochs and learning rate 1e-3, which looks
    high.

    SimCSE pools by [CLS], then a Linear and Tanh that are kept (`--pooling cls-mlp`, the default of `train-teacher`).
    `finetune` keeps the pooling of its model; a checkpoint that names none is pooled by the mean.
    """

    title = "Supervised contrastive learning on triplets"
    paper = "Gao, Yao and Chen 2021, SimCSE; as stage 2: Gao et al. 2021, DistilCSE"
    link = "https://arxiv.org/abs/2104.08821"
    equation = "-log exp(cos(z, z+) / tau) / sum_j [exp(cos(z, z+_j) / tau) + sum_n exp(cos(z, z-_jn) / tau)]"
    deployed = "the student's own pooled vector, or with dim=d the head's output: it becomes a Dense layer"
    stage = "finetune"
    needs = frozenset({"triplets"})
    contrastive = True
    recipe = Hyperparameters(
        lr=Number(
            5e-5,
            f"{DISTILCSE}, and {NLI_RUN}: for 110M and 14M parameters; {TABLE}: 5e-5 base, 1e-5 large",
            Sized(
                1e-5,
                f"{DISTILCSE}: for 52M parameters; the range of {MEDIUM // 10**6}M to {SMALL // 10**6}M is {OURS}",
                "parameters",
                at_least=MEDIUM,
                below=SMALL,
            ),
        ),
        epochs=Number(5, f"{DISTILCSE}, and {NLI}; {APPENDIX}: 3"),
        batch_size=Number(128, f"{DISTILCSE}; {NLI_RUN}: 128 on each of 4 GPUs; {TABLE}: 512"),
        schedule=Number("linear", f"{RUN}: {TRAINER}; {NLI}: cosine"),
        warmup_steps=Number(0, f"{RUN}: {TRAINER}; {NLI}: a tenth of one epoch"),
        weight_decay=Number(0.0, f"{DISTILCSE}: Adam; {RUN}: {TRAINER}"),
        clip=Number(1.0, f"{NLI}, and {RUN}: {TRAINER}"),
        betas=Number("0.9 0.999", f"{RUN}: {TRAINER}; {NLI}: 0.9 0.98"),
        eval_every=Number(125, f"{DISTILCSE}, {NLI_RUN}, and {RUN}; {APPENDIX}: 250"),
        max_length=Number(
            256,
            f"{OURS}: long texts cost little, and without them retrieval gets worse; 32 in {RUN}",
        ),
    )
    teacher_recipe = replace(
        recipe,
        lr=Number(
            5e-5,
            f"{TABLE}, base models",
            Sized(1e-5, f"{TABLE}, large models, which are {LARGE:,} wide", "width", at_least=LARGE),
        ),
        epochs=Number(3, APPENDIX),
        batch_size=Number(512, TABLE),
        max_length=Number(32, RUN),
    )
    options = TRIPLET_OPTIONS

    def objective(
        self,
        anchor: Tensor,
        positive: Tensor,
        negatives: Tensor,
        student: Tensor | None = None,
        teacher: Tensor | None = None,
    ) -> dict[str, Tensor]:
        return self.triplet_terms(anchor, positive, negatives, student, teacher)
