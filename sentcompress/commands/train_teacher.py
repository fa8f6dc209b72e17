"""The options of `sentcompress train-teacher`."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.finetune import OBJECTIVE
from sentcompress.commands.options import MODEL, Opt
from sentcompress.commands.shared import SkipBad, Training


@dataclass(frozen=True, kw_only=True)
class Params(Training):
    """What to train, and on which triplets."""

    command: ClassVar[str] = "train-teacher"

    model: Annotated[
        str,
        Opt("Model to start from: a folder, a hub name such as roberta-large.", affects="input", names=MODEL),
    ]
    triplets: Annotated[
        tuple[str, ...],
        Opt("Labelled pairs or triplets, in any format that augment reads; can be repeated.", affects="input"),
    ]
    pooling: Annotated[
        str,
        Opt(
            "For a checkpoint without modules.json: cls-mlp (as SimCSE: CLS, a new Linear and Tanh), cls, mean.",
            choices=("cls-mlp", "cls", "mean"),
        ),
    ] = "cls-mlp"
    objective: Annotated[str, OBJECTIVE] = "simcse"
    skip_bad: SkipBad = False

    def hyperparameters(self, hidden: int) -> Any:
        """The objective's hyperparameters for teachers of hidden width `hidden`, with what was asked for."""
        from sentcompress.methods import objective_class
        from sentcompress.training.settings import in_place

        return in_place(objective_class(self.objective).teacher_recipe(hidden), self)

    def settings(self, hidden: int = 0) -> Any:
        """The same as a `Settings`."""
        from sentcompress.methods import objective_class
        from sentcompress.training.settings import Settings

        return Settings.of(objective_class(self.objective).teacher_recipe(hidden), self)

    def objective_options(self) -> dict[str, Any]:
        """All options of the objective, with what `options` says."""
        from sentcompress.methods import objective_class
        from sentcompress.methods.hyperparameters import parse_options

        return parse_options(objective_class(self.objective).options, self.options)[0]

    def faults(self) -> list[str]:
        from sentcompress.methods import OBJECTIVES, hint_for, objective_class
        from sentcompress.methods.hyperparameters import parse_options

        faults = []
        if self.objective not in OBJECTIVES:
            faults.append(f"no objective {self.objective!r}; {hint_for(self.objective, OBJECTIVES)}")
        else:
            faults += parse_options(objective_class(self.objective).options, self.options)[1]
            options = self.objective_options()
            if options["keep"]:
                faults.append("keep needs a teacher's vectors: it is for finetune")
            if options["dim_start"] != "random":
                faults.append("dim_start needs a model with useful vectors: it is for finetune")
        if not self.triplets:
            faults.append("`triplets`: name at least one file")
        if self.dev is not None and not self.dev.is_file():
            faults.append(f"`dev` {self.dev}: no such file")
        return faults


COMMAND = Command(
    Params, "Train a teacher on triplets (supervised SimCSE), for `teacher-embed --teacher NAME`.", makes="students"
)
