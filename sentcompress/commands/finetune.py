"""The options of `sentcompress finetune`."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import ModelOfOthers, Objective, Pooling, TeacherVectors
from sentcompress.commands.training import StudentTrainingOptions


@dataclass(frozen=True, kw_only=True)
class Params(StudentTrainingOptions):
    """The model and the data. `dim` and `keep` are the objective's options of the same names."""

    command: ClassVar[str] = "finetune"

    objective: Objective = "simcse"
    model: ModelOfOthers = None
    pooling: Pooling = "auto"
    dim: Annotated[int | None, Opt("Add a linear head with this many dimensions.", default="no head")] = None
    keep: Annotated[
        float | None, Opt("Weight of a distillation term on unlabelled sentences with teacher vectors.", default="0")
    ] = None
    sentences: Annotated[
        str | None,
        Opt(
            "Sentence table, made by augment or mine-negatives.",
            affects="input",
            names="sentences",
            default="the newest with triplets",
        ),
    ] = None
    teacher_vectors: TeacherVectors = None

    def faults(self) -> list[str]:
        faults = super().faults()
        asked = [option.partition("=")[0].strip() for option in self.given_options()]
        if self.teacher_vectors is not None and "keep" not in asked:
            faults.append("`teacher_vectors` is for the distillation term: give its weight with `keep`, such as 0.5")
        return faults

    def given_options(self) -> tuple[str, ...]:
        own = [f"{name}={value}" for name in ("dim", "keep") if (value := getattr(self, name)) is not None]
        return (*self.options, *own)


COMMAND = Command(
    Params,
    "Train a student further on triplets. They come from augment or mine-negatives.",
    makes="students",
    version=2,  # weights of 4 bits start fitted to texts
    shared="work",
    needs=("sentences",),
)
