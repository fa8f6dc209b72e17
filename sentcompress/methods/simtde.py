"""SimTDE: a narrow token table and the teacher's last layers learn its tokens and its sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor, nn

from sentcompress.methods.base import Shapes, linear_head, squared_error, unit
from sentcompress.methods.heads import HEAD, HeadedMethod, choose_head
from sentcompress.methods.hyperparameters import OURS, PAPER, Hyperparameters, Number, Option
from sentcompress.methods.similarity import contrast, relation_error

LOSS = f"{PAPER}, definition of the loss"
UNNAMED = f"{OURS}: the paper names AdamW, and no number"
OFF = f"{OURS}: off, as it is not in the paper"

# One frame for the three methods of the SimTDE paper.
SIMTDE_RECIPE = Hyperparameters(
    lr=Number(5e-4, UNNAMED),
    epochs=Number(3, UNNAMED),
    batch_size=Number(128, UNNAMED),
    schedule=Number("cosine", UNNAMED),
    warmup_steps=Number(300, UNNAMED),
    dropout=Number(0.0, f"{OURS}: the target of a sentence is one fixed vector, and noise only blurs it"),
)
REDUCTION = Option(
    "mean",
    "sum or mean over the dimensions, of every squared distance; over sentences and tokens it is always the mean",
    f"{LOSS}: mean squared error; sum is {OURS}",
    choices=("sum", "mean"),
)
NORMALISE = Option(
    False, "scale both sentence vectors to length one first", f"{LOSS}: the vectors as they are; true is {OURS}"
)


class SimTDE(HeadedMethod):
    """Match the teacher's token embeddings and its sentence vector (Xie et al. 2023).

    loss = alpha MSE(E_s, E_t) + (1 - alpha) MSE(s, t). E_s [M, H_s]: the student's token embeddings after the
    projection to its hidden width, E_t [M, H_t] the teacher's, for the M real tokens of the batch: padding is left
    out. Where H_s and H_t differ, a linear layer that is thrown away goes between; so does one between s and t
    (option `head`), which is deployed by default, so that vectors stay as wide as the teacher's.

    The paper leaves learning rate, batch, and epochs open. Ours to add, all off by default: `normalise` compares the
    directions of s and t; `token_weight` w makes it w MSE(E_s, E_t) + MSE(s, t); `contrast` adds InfoNCE of s against
    the t of its batch, and `relation` the mean squared difference of the cosines within the batch. Both of these look
    at how sentences lie to one another, which is what retrieval needs. `states` adds MSE(H_s, H_t) of the last hidden
    states [M, H] of each token, which are what is pooled: hundreds of targets a text instead of one. They are too many
    to cache, so that the teacher then runs beside the student.
    """

    title = "Token and sentence distillation into factorised embeddings"
    paper = "Xie et al. 2023, SimTDE: Simple Transformer Distillation for Sentence Embeddings"
    link = "https://openreview.net/forum?id=Rnb4T-02AH"
    equation = "alpha mean_tokens |E_s - E_t|^2 + (1 - alpha) mean_B |s - t|^2"
    deployed = "the student's own pooled vector, as wide as the teacher's; else the head's output (head=thrown: not)"
    stage = "distill"
    needs = frozenset({"teacher", "tokens"})
    contrastive = False
    recipe = SIMTDE_RECIPE
    options: ClassVar[Mapping[str, Option]] = {
        "alpha": Option(0.5, "share of the token term, from 0 to 1; 0 leaves it out", LOSS, minimum=0),
        "token_weight": Option(
            0.0, "weight of the token term beside a sentence term of weight 1; 0 goes by alpha", OFF, minimum=0
        ),
        "normalise": NORMALISE,
        "reduction": REDUCTION,
        "contrast": Option(0.0, "weight of InfoNCE against the batch's teacher vectors", OFF, minimum=0),
        "temperature": Option(0.05, "temperature of that term", f"{OURS}: as SimCSE's", minimum=1e-6),
        "relation": Option(0.0, "weight of the difference of the batch's cosines, squared", OFF, minimum=0),
        "states": Option(
            0.0, "weight of the last hidden states' term; the teacher then runs beside the student", OFF, minimum=0
        ),
        "head": replace(HEAD, source=f"{PAPER}, table 2: students as wide as the teacher; the rest is {OURS}"),
    }

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        if self.settings["alpha"] > 1:
            raise ValueError(f"alpha must be from 0 to 1, not {self.settings['alpha']:g}")
        self.head = choose_head(shapes.student, shapes.teacher, self.settings["head"])
        self.token_map = self._map("tokens")
        self.state_map = self._map("last-states")
        self.contrastive = bool(self.settings["contrast"] or self.settings["relation"])

    @classmethod
    def needs_with(cls, options: Mapping[str, Any]) -> frozenset[str]:
        tokens = {"tokens"} if options["token_weight"] or options["alpha"] else set()
        states = {"last-states"} if options["states"] else set()
        return frozenset({"teacher"} | tokens | states)

    def _map(self, need: str) -> nn.Module:
        """From the student's hidden width to the teacher's, for what is compared and no longer needed afterwards."""
        shapes = self.shapes
        if need not in self.needs_with(self.settings) or shapes.hidden == shapes.teacher_hidden:
            return nn.Identity()
        return linear_head(shapes.hidden, shapes.teacher_hidden, "random")

    @property
    def weights(self) -> tuple[float, float]:
        """Of the token term and of the sentence term."""
        token_weight, alpha = float(self.settings["token_weight"]), float(self.settings["alpha"])
        return (token_weight, 1.0) if token_weight else (alpha, 1.0 - alpha)

    def objective(
        self,
        student: Tensor,
        teacher: Tensor,
        student_tokens: Tensor | None = None,
        teacher_tokens: Tensor | None = None,
        student_last: Tensor | None = None,
        teacher_last: Tensor | None = None,
    ) -> dict[str, Tensor]:
        settings, prediction, terms = self.settings, self.predict(student), {}
        token_weight, sentence_weight = self.weights
        if student_tokens is not None and teacher_tokens is not None:
            token = squared_error(self.token_map(student_tokens), teacher_tokens, settings["reduction"])
            terms["token"] = token_weight * token
        terms["sentence"] = sentence_weight * self._distance(prediction, teacher)
        if student_last is not None and teacher_last is not None:
            states = squared_error(self.state_map(student_last), teacher_last, settings["reduction"])
            terms["states"] = settings["states"] * states
        if settings["contrast"]:
            scale = 1.0 / settings["temperature"]
            terms["contrast"] = settings["contrast"] * contrast(prediction, teacher, scale)
        if settings["relation"]:
            terms["relation"] = settings["relation"] * relation_error(prediction, teacher)
        return terms

    def _distance(self, prediction: Tensor, teacher: Tensor) -> Tensor:
        if self.settings["normalise"]:
            prediction, teacher = unit(prediction), unit(teacher)
        return squared_error(prediction, teacher, self.settings["reduction"])
