"""Options of the commands that train: distill, finetune and train-teacher."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

from sentcompress.commands.options import Opt, keys_of
from sentcompress.commands.shared import DEV_PASSAGES, LEAST_PASSAGES, Device, Hub, Named, Seed, nothing_at

# Without float16, which would need loss scaling.
TRAINING_DTYPES = ("auto", "float32", "bfloat16")
SCHEDULES = ("cosine", "linear", "constant")
BY_LENGTH = "by-length"
BATCHES = (BY_LENGTH, "random")
DEFAULT = "the method's"
# Parts of the help of `dev`.
FOR_SELECTION = "Data for checkpoint selection, never a test set:"
GRADED = "(score<TAB>sentence1<TAB>sentence2)"
HELD_OUT = "held-out training data"
TRAINED_FOR_INT4 = "int4: train for an export with 4-bit weights (quantization-aware training)."
# Options that a default name spells out.
MOST_TOLD = 3


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Hub, Named):
    """Options of commands that train; the defaults of the hyperparameters are the method's."""

    lr: Annotated[float | None, Opt("Peak learning rate.", above=0, default=DEFAULT)] = None
    epochs: Annotated[int | None, Opt("Passes over the data.", minimum=1, maximum=1_000_000, default=DEFAULT)] = None
    batch_size: Annotated[int | None, Opt("Sentences or triplets per batch.", minimum=1, default=DEFAULT)] = None
    batch_tokens: Annotated[
        int | None,
        Opt(
            "Maximum tokens of a batch, padding included.",
            minimum=1,
            default="64 per text; no limit for contrastive methods",
        ),
    ] = None
    batches: Annotated[
        str,
        Opt(
            "How to group texts into batches: by-length (little padding) or random (as in the papers).",
            choices=BATCHES,
        ),
    ] = BY_LENGTH
    grad_accum: Annotated[
        int, Opt("Batches per optimizer step; contrastive methods use negatives from all of them.", minimum=1)
    ] = 1
    warmup_steps: Annotated[
        int | None, Opt("Warm-up steps; at most a tenth of all steps are used.", minimum=0, default=DEFAULT)
    ] = None
    warmup_ratio: Annotated[
        float | None, Opt("Warm-up as a share of all steps, in place of --warmup-steps.", minimum=0, maximum=1)
    ] = None
    schedule: Annotated[
        str | None,
        Opt(
            "Learning rate schedule: cosine, linear or constant.",
            choices=SCHEDULES,
            default=DEFAULT,
        ),
    ] = None
    weight_decay: Annotated[
        float | None, Opt("Weight decay of AdamW, on matrices only.", minimum=0, default=DEFAULT)
    ] = None
    betas: Annotated[
        tuple[float, ...] | None,
        Opt("AdamW's two betas, such as 0.9,0.98.", minimum=0, below=1, commas=True, default=DEFAULT),
    ] = None
    clip: Annotated[
        float | None, Opt("Clip gradients to this norm; 0 disables clipping.", minimum=0, default=DEFAULT)
    ] = None
    max_length: Annotated[
        int | None, Opt("Tokens read per sentence in training.", minimum=3, maximum=1_000_000, default=DEFAULT)
    ] = None
    dropout: Annotated[float | None, Opt("Dropout probability; 0 is faster.", minimum=0, below=1, default=DEFAULT)] = (
        None
    )
    dev: Annotated[
        Path | None,
        Opt(
            f"{FOR_SELECTION} graded pairs {GRADED}, or a collection as for eval-retrieval.",
            affects="input",
            default=HELD_OUT,
        ),
    ] = None
    eval_every: Annotated[
        int | None, Opt("Steps between dev scores.", minimum=1, default=f"{DEFAULT}, or 4 per epoch")
    ] = None
    patience: Annotated[
        float | None, Opt("Stop after this many epochs without a better dev score.", above=0, default=DEFAULT)
    ] = None
    max_steps: Annotated[int | None, Opt("Stop after this many steps.", minimum=1)] = None
    max_minutes: Annotated[
        float | None,
        Opt(
            "Stop after this many minutes of training and scoring; the result then depends on the machine's speed.",
            above=0,
        ),
    ] = None
    ema: Annotated[
        float | None,
        Opt("EMA decay, such as 0.998; the averaged weights are the ones scored and saved.", above=0, below=1),
    ] = None
    weight_format: Annotated[
        str | None,
        Opt(
            TRAINED_FOR_INT4,
            choices=("int4",),
            default="int4 if the starting model was trained so",
        ),
    ] = None
    options: Annotated[
        tuple[str, ...],
        Opt(
            "Option of the method, listed by `sentcompress methods show METHOD`; can be repeated.",
            flag="set",
            metavar="NAME=VALUE",
        ),
    ] = ()
    seed: Seed = 0
    device: Device = "auto"
    dtype: Annotated[
        str,
        Opt(
            "Number format of the computation: auto (measured on a CPU, bfloat16 on CUDA), float32 or bfloat16.",
            choices=TRAINING_DTYPES,
        ),
    ] = "auto"
    checkpoint_seconds: Annotated[
        float, Opt("Seconds between checkpoints.", flag="checkpoint-every", minimum=0, affects="run")
    ] = 60.0

    # The option that names the method: `method` of distill, `objective` of the others.
    names_method: ClassVar[str] = "objective"
    # Options that the default name of the result tells already, or that are no property of the model.
    in_name: ClassVar[frozenset[str]] = frozenset({"objective", "model", "dim"})

    @property
    def method_name(self) -> str:
        """The name of the requested method or objective."""
        return str(getattr(self, self.names_method))

    def method_is_known(self) -> bool:
        """Whether the method follows from these options alone."""
        return True

    def find_method(self) -> Any:
        """The class of the method, a `Method`.

        Raises:
            UsageError: if there is none of that name.
        """
        from sentcompress.methods import method_class, objective_class

        return (method_class if self.names_method == "method" else objective_class)(self.method_name)

    def suffix(self) -> str:
        """The part of the result's default name that tells the other options, such as `-lr-0.0003`.

        More than three options are replaced by six hexadecimal digits of their digest.
        """
        own = {key: getattr(self, key.field) for key in keys_of(type(self)).values() if key.opt.affects == "result"}
        told = [
            "-".join([key.name, *([] if value is True else _texts(value))])
            for key, value in own.items()
            if key.field not in {*self.in_name, "options"} and value != key.default
        ]
        told += [option.replace("=", "-").replace("_", "-") for option in self.options]
        text = "-".join(told)
        if len(told) > MOST_TOLD:
            return f"-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        return f"-{text}" if told else ""

    def method_options(self) -> dict[str, Any]:
        """The values of all options of the method, with the requested ones."""
        from sentcompress.methods.hyperparameters import parse_options

        return parse_options(self.find_method().options, self.given_options())[0]

    def given_options(self) -> tuple[str, ...]:
        """The requested options of the method, each as `name=value`."""
        return self.options

    def recipe(self) -> Any:
        """The method's default hyperparameters, for models of every size."""
        return self.find_method().recipe

    def recipe_for(self, size: Any = None) -> Any:
        """The method's default hyperparameters for a model of this size; None if the size is unknown."""
        return self.recipe().for_size(**(vars(size) if size else {}))

    def hyperparameters(self, size: Any = None, filled: Mapping[str, str] = MappingProxyType({})) -> Any:
        """The hyperparameters of the run: the defaults, replaced by the requested values.

        Args:
            filled: the sources of the options that the command filled in itself, by name.
        """
        from sentcompress.training.settings import in_place

        return in_place(self.recipe_for(size), self, filled)

    def settings(self, size: Any = None) -> Any:
        """The hyperparameters and other settings of the training loop, as a `Settings`."""
        from sentcompress.training.settings import Settings

        return Settings.of(self.recipe_for(size), self)

    def faults(self) -> list[str]:
        from sentcompress.corpora.documents_artifact import names_documents
        from sentcompress.methods import METHODS, OBJECTIVES, hint_for
        from sentcompress.methods.hyperparameters import parse_options

        known = METHODS if self.names_method == "method" else OBJECTIVES
        if not self.method_is_known():
            faults = []
        elif self.method_name in known:
            faults = parse_options(self.find_method().options, self.given_options())[1]
        else:
            faults = [f"no {self.names_method} {self.method_name!r}; {hint_for(self.method_name, known)}"]
        if self.betas is not None and len(self.betas) != 2:
            faults.append(f"`betas` must be two numbers, such as 0.9,0.98, not {len(self.betas)}")
        if self.warmup_steps is not None and self.warmup_ratio is not None:
            faults.append("`warmup_steps` and `warmup_ratio` both set the warm-up; give one of them")
        if self.dev is not None and not names_documents(str(self.dev)) and not self.dev.exists():
            faults.append(nothing_at(self.dev, "dev"))
        return faults


@dataclass(frozen=True, kw_only=True)
class StudentTrainingOptions(TrainingOptions):
    """Options of commands that train a student, whose teacher can select checkpoints."""

    dev: Annotated[
        Path | None,
        Opt(
            f"{FOR_SELECTION} documents/NAME (search fidelity to the teacher), graded pairs {GRADED}, or a collection "
            "as for eval-retrieval.",
            affects="input",
            default=HELD_OUT,
        ),
    ] = None
    keep_index: Annotated[
        bool,
        Opt("With --dev documents/NAME: score the student's queries on the teacher's passage vectors."),
    ] = False
    dev_passages: Annotated[
        int | None,
        Opt(
            "With --dev documents/NAME: search among at most N passages.",
            minimum=LEAST_PASSAGES,
            default=f"{DEV_PASSAGES}",
        ),
    ] = None


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, tuple) else [str(value)]
