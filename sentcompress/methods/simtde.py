"""SimTDE: a student with a factorised token table learns the teacher's token and sentence embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from sentcompress.methods.base import Shapes, linear_head, squared_error, unit
from sentcompress.methods.heads import HEAD, HeadedMethod, choose_head
from sentcompress.methods.hyperparameters import OURS, PAPER, Hyperparameters, Number, Option
from sentcompress.methods.similarity import contrast, relation_error

LOSS = f"{PAPER}, section 3"
UNNAMED = f"{OURS}: the paper names AdamW, but no value"
OFF = f"{OURS}: off, as it is not in the paper"
ABLATION = f"{PAPER}, ablation study"

# Shared by the three methods of the SimTDE paper.
SIMTDE_RECIPE = Hyperparameters(
    lr=Number(5e-4, UNNAMED),
    epochs=Number(3, UNNAMED),
    batch_size=Number(128, UNNAMED),
    schedule=Number("cosine", UNNAMED),
    warmup_steps=Number(300, UNNAMED),
    dropout=Number(0.0, f"{OURS}: each sentence has one fixed target vector, and dropout only adds noise"),
)
REDUCTION = Option(
    "mean",
    "sum or mean of squares over the dimensions; always the mean over sentences and tokens",
    f"{LOSS}: mean squared error; sum is {OURS}",
    choices=("sum", "mean"),
)
NORMALISE = Option(False, "scale both sentence vectors to length one first", f"{LOSS}: false; true is {OURS}")


class SimTDE(HeadedMethod):
    """Match the teacher's token embeddings and its sentence vector (Xie et al. 2023).

    loss = alpha MSE(E_s, E_t) + (1 - alpha) MSE(s, t). E_s [N, H_s]: the student's token embeddings after the
    projection to its hidden width H_s. E_t [N, H_t]: the teacher's. N: the real tokens of the batch, without padding.
    If H_s and H_t differ, a linear layer maps between them and is discarded. If the widths of s and t differ, another
    one does (option `head`). It is deployed by default, so that vectors keep the teacher's width.

    The paper contradicts itself about E: it is Emb(I) of the tokenised input I, but has the shape [H, v] of the whole
    table, in which each of the v tokens occurs once. Here it is of the input, with positions and LayerNorm, so frequent
    tokens count more.

    The paper's ablations are options. `layers` adds the MSE between the hidden states of the student's K layers and the
    teacher's last K, layer by layer. In the paper, it replaces the initialisation from the teacher's weights (`--start
    random`). `sentence_loss` replaces MSE(s, t): `kl` is the Kullback-Leibler divergence KL(softmax(t), softmax(s));
    `cosine-mse` and `cosine-mae` are the mean squared and the mean absolute difference of the cosines of every two
    sentences in the batch. The paper gives no formula for these losses: the softmax over the dimensions and the choice
    of pairs are ours. With these three, s need not equal t, so dev scores compare cosines.

    The paper states no learning rate, batch size or number of epochs. Our additions are off by default. `normalise`
    compares the directions of s and t. `token_weight` w changes the loss to w MSE(E_s, E_t) + MSE(s, t). `contrast`
    adds InfoNCE of s against the t of its batch, and `relation` the mean squared difference of the cosines within the
    batch; both train the relations between sentences, which matter for retrieval. `states` adds the MSE between the
    last hidden states of each token, before pooling. These are hundreds of targets per text instead of one. They are
    too large to cache, so the teacher then runs during training.
    """

    title = "Token and sentence distillation into factorised embeddings"
    paper = "Xie et al. 2023, SimTDE: Simple Transformer Distillation for Sentence Embeddings"
    link = "https://openreview.net/forum?id=Rnb4T-02AH"
    equation = "alpha MSE(E_s, E_t) + (1 - alpha) MSE(s, t)"
    deployed = "the student's own pooled vector if as wide as the teacher's or head=thrown; else the head's output"
    stage = "distill"
    needs = frozenset({"teacher", "tokens"})
    contrastive = False
    recipe = SIMTDE_RECIPE
    options: ClassVar[Mapping[str, Option]] = {
        "alpha": Option(0.5, "share of the token term, from 0 to 1; 0 disables it", LOSS, minimum=0, maximum=1),
        "token_weight": Option(
            0.0, "weight of the token term, with a sentence term of weight 1; 0 uses alpha", OFF, minimum=0
        ),
        "normalise": NORMALISE,
        "reduction": REDUCTION,
        "contrast": Option(0.0, "weight of InfoNCE against the batch's teacher vectors", OFF, minimum=0),
        "temperature": Option(0.05, "temperature of that term", f"{OURS}: as SimCSE's", minimum=1e-6),
        "relation": Option(0.0, "weight of the squared difference of the batch's cosines", OFF, minimum=0),
        "states": Option(
            0.0, "weight of the term between last hidden states; the teacher then runs during training", OFF, minimum=0
        ),
        "layers": Option(
            0.0,
            "weight of the term between the hidden states of the student's layers and the teacher's last layers; the"
            " teacher then runs during training",
            f"{ABLATION}: none; one row has the last 3 layers, with a weight that is not stated",
            minimum=0,
        ),
        "sentence_loss": Option(
            "mse",
            "the sentence term: mse or kl on the vectors, mse or mae (mean absolute error) on the batch's cosines",
            f"{ABLATION}: mse, which is best; the form of kl, cosine-mse and cosine-mae is {OURS}",
            choices=("mse", "kl", "cosine-mse", "cosine-mae"),
        ),
        "head": replace(HEAD, source=f"{PAPER}, table 2: students as wide as the teacher; the rest is {OURS}"),
    }

    def __init__(self, shapes: Shapes, options: Mapping[str, Any]) -> None:
        super().__init__(shapes, options)
        self.head = choose_head(shapes.student, shapes.teacher, self.settings["head"])
        self.token_map = self._map("tokens")
        self.state_map = self._map("last-states")
        self.layer_map = self._map("last-layers")
        relations = self.settings["contrast"] or self.settings["relation"]
        self.contrastive = bool(relations) or self.settings["sentence_loss"].startswith("cosine-")

    @classmethod
    def needs_with(cls, options: Mapping[str, Any]) -> frozenset[str]:
        tokens = {"tokens"} if options["token_weight"] or options["alpha"] else set()
        states = {"last-states"} if options["states"] else set()
        layers = {"last-layers"} if options["layers"] else set()
        return frozenset({"teacher"} | tokens | states | layers)

    def _map(self, need: str) -> nn.Module:
        """A layer from the student's hidden width to the teacher's, used only in training."""
        shapes = self.shapes
        if need not in self.needs_with(self.settings) or shapes.hidden == shapes.teacher_hidden:
            return nn.Identity()
        return linear_head(shapes.hidden, shapes.teacher_hidden, "random")

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of the token term and of the sentence term."""
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
        student_states: Tensor | None = None,
        teacher_states: Tensor | None = None,
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
        if student_states is not None and teacher_states is not None:
            mapped = self.layer_map(student_states).flatten(0, 1)
            layers = squared_error(mapped, teacher_states.flatten(0, 1), settings["reduction"])
            terms["layers"] = settings["layers"] * layers
        if settings["contrast"]:
            scale = 1.0 / settings["temperature"]
            terms["contrast"] = settings["contrast"] * contrast(prediction, teacher, scale)
        if settings["relation"]:
            terms["relation"] = settings["relation"] * relation_error(prediction, teacher)
        return terms

    def has_target(self) -> bool:
        return self.settings["sentence_loss"] == "mse" and super().has_target()

    def _distance(self, prediction: Tensor, teacher: Tensor) -> Tensor:
        if self.settings["normalise"]:
            prediction, teacher = unit(prediction), unit(teacher)
        match self.settings["sentence_loss"]:
            case "kl":
                ours, theirs = prediction.log_softmax(dim=1), teacher.log_softmax(dim=1)
                return functional.kl_div(ours, theirs, reduction="batchmean", log_target=True)
            case "cosine-mse":
                return relation_error(prediction, teacher)
            case "cosine-mae":
                return relation_error(prediction, teacher, absolute=True)
        return squared_error(prediction, teacher, self.settings["reduction"])
