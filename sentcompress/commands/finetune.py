"""The options of `sentcompress finetune`."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from sentcompress.commands import Command
from sentcompress.commands.options import Opt
from sentcompress.commands.shared import Model, TeacherVectors, Training

OBJECTIVE = Opt("simcse or ibkd: see `sentcompress methods`.")


@dataclass(frozen=True, kw_only=True)
class Params(Training):
    """The model and the data. `dim` and `keep` are the objective's options of the same names."""

    command: ClassVar[str] = "finetune"

    objective: Annotated[str, OBJECTIVE] = "simcse"
    model: Model = None
    dim: Annotated[int | None, Opt("Add a linear head with this many dimensions.")] = None
    keep: Annotated[
        float | None, Opt("Weight of a distillation term on unlabelled sentences with teacher vectors.")
    ] = None
    sentences: Annotated[
        str | None,
        Opt("Sentence table.", affects="input", names="sentences", default="the newest with triplets"),
    ] = None
    teacher_vectors: TeacherVectors = None

    def _given(self) -> tuple[str, ...]:
        own = [f"{name}={value}" for name in ("dim", "keep") if (value := getattr(self, name)) is not None]
        return (*self.options, *own)

    def settings(self) -> Any:
        """The objective's hyperparameters, overridden by the options, as a `Settings`."""
        from sentcompress.methods import objective_class
        from sentcompress.training.settings import Settings

        return Settings.of(objective_class(self.objective).recipe, self)

    def objective_options(self) -> dict[str, Any]:
        """The values of all options of the objective, including `dim` and `keep`."""
        from sentcompress.methods import objective_class
        from sentcompress.methods.hyperparameters import parse_options

        return parse_options(objective_class(self.objective).options, self._given())[0]

    def faults(self) -> list[str]:
        from sentcompress.methods import OBJECTIVES, hint_for, objective_class
        from sentcompress.methods.hyperparameters import parse_options

        if self.objective in OBJECTIVES:
            faults = parse_options(objective_class(self.objective).options, self._given())[1]
        else:
            faults = [f"no objective {self.objective!r}; {hint_for(self.objective, OBJECTIVES)}"]
        if self.dev is not None and not self.dev.is_file():
            faults.append(f"`dev` {self.dev}: no such file")
        return faults


COMMAND = Command(
    Params,
    "Stage 2: train a student on triplets with hard negatives, from augment or mine-negatives.",
    makes="students",
)
