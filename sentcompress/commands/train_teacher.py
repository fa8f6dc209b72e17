"""The options of `sentcompress train-teacher`."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import Objective, SkipBad
from sentcompress.commands.training import TRAINED_FOR_INT4, TrainingOptions


@dataclass(frozen=True, kw_only=True)
class Params(TrainingOptions):
    """The starting model and the triplets."""

    command: ClassVar[str] = "train-teacher"

    model: Annotated[
        str,
        Opt("Model to start from: a folder, or a hub name such as roberta-large.", affects="input", names=MODEL),
    ]
    triplets: Annotated[
        tuple[str, ...],
        Opt("Labelled pairs or triplets, in any format that augment reads; can be repeated.", affects="input"),
    ]
    pooling: Annotated[
        str,
        Opt(
            "Pooling of a checkpoint without modules.json: cls-mlp (CLS, a new Linear and Tanh), cls or mean.",
            choices=("cls-mlp", "cls", "mean"),
        ),
    ] = "cls-mlp"
    objective: Objective = "simcse"
    weight_format: Annotated[str | None, Opt(TRAINED_FOR_INT4, choices=("int4",))] = None
    skip_bad: SkipBad = False

    def recipe(self) -> Any:
        method = self.find_method()
        return method.teacher_recipe or method.recipe

    def faults(self) -> list[str]:
        from sentcompress.methods import OBJECTIVES

        faults = super().faults()
        if self.objective in OBJECTIVES:
            options = self.method_options()
            if options["keep"]:
                faults.append("keep needs teacher vectors; it is for finetune only")
            if options["dim_start"] != "random":
                faults.append("dim_start needs a model with useful vectors; it is for finetune only")
        if not self.triplets:
            faults.append("`triplets`: name at least one file")
        return faults


COMMAND = Command(
    Params,
    "Train a teacher on triplets (supervised SimCSE). To use it, run `teacher-embed --teacher NAME`.",
    makes="students",
    version=2,  # weights of 4 bits start fitted to texts
    shared="work",
)
