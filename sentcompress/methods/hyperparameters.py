"""What a method says about itself besides its equation: numbers with their sources, and switches.

Nothing here imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sentcompress.errors import did_you_mean

# How a source begins: the first goes on with the place in the paper, the second with the file, the third with a reason.
PAPER = "paper"
CODE = "released code"
OURS = "ours"
# What a script leaves to its library.
TRAINER = "the default of transformers' Trainer"
TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0")


@dataclass(frozen=True)
class Number:
    """One value of a recipe and where it is from."""

    value: float | int | str | None
    source: str


# What holds for every method that does not say otherwise.
_ADAMW_BETAS = Number("0.9 0.999", "AdamW's own defaults")
_NO_WARMUP = Number(0, "not named")
_LONG_TEXT = Number(
    256,
    f"{OURS}: batches are of one length, so long text costs only what it is, and a student that never saw any"
    " loses retrieval (the scripts of the papers cut at 32 to 128 tokens)",
)


@dataclass(frozen=True)
class Hyperparameters:
    """The settings that a method trains with when nothing else is asked for.

    Attributes:
        lr: peak learning rate.
        epochs: passes over the training rows.
        batch_size: sentences a step.
        schedule: `cosine` or `linear` (both to zero) or `constant`.
        warmup_steps, warmup_epochs: linear warm-up, in steps or in epochs; the longer of the two.
        weight_decay: AdamW's, on matrices only.
        clip: largest norm of all gradients together; 0 is off.
        betas: AdamW's two, separated by a space.
        max_length: tokens that are read of a sentence while training.
        dropout: None leaves what the student's checkpoint says.
        eval_every: steps between dev scores; None is four times an epoch.
        patience: stop after so many epochs without a better dev score; None is never.
    """

    lr: Number
    epochs: Number
    batch_size: Number
    schedule: Number
    warmup_steps: Number = _NO_WARMUP
    warmup_epochs: Number = _NO_WARMUP
    weight_decay: Number = Number(0.01, "AdamW's usual value; not named")
    clip: Number = Number(1.0, f"{OURS}: the usual bound; not named")
    betas: Number = _ADAMW_BETAS
    max_length: Number = _LONG_TEXT
    dropout: Number = Number(None, "the checkpoint's own; not named")
    eval_every: Number = Number(None, f"{OURS}: four times an epoch")
    patience: Number = Number(None, "never; not named")

    def values(self) -> dict[str, Any]:
        """Name -> value."""
        return {field.name: getattr(self, field.name).value for field in fields(self)}

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Name -> value and source, for JSON."""
        return {field.name: dict(vars(getattr(self, field.name))) for field in fields(self)}

    def overridden(self, values: Mapping[str, Any], by: str) -> Hyperparameters:
        """The recipe with some values replaced; None keeps the recipe's. The source becomes `by`."""
        given = {
            name: Number(value, f"{by}, in place of {getattr(self, name).value}")
            for name, value in values.items()
            if value is not None
        }
        return replace(self, **given)


@dataclass(frozen=True)
class Option:
    """A switch of a method, set with `--set name=value`.

    Attributes:
        default: its type is the type of the option.
        help: what it does.
        source: where the default is from, and which reading the other values are.
        choices: the values allowed for a text option.
        minimum, maximum: the smallest and the largest number allowed.
        or_zero: whether 0 is allowed too, which is no number of that range but a word for something else.
    """

    default: bool | int | float | str
    help: str
    source: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    or_zero: bool = False

    @property
    def kind(self) -> str:
        return "|".join(self.choices) if self.choices else type(self.default).__name__

    def parse(self, text: str) -> bool | int | float | str:
        """The value that `text` stands for.

        Raises:
            ValueError: with a message for the user.
        """
        value = self._typed(text.strip())
        if self.choices and value not in self.choices:
            raise ValueError(f"must be one of {', '.join(self.choices)}, not {text!r}")
        if self.or_zero and value == 0:
            return value
        if self.minimum is not None and not float(value) >= self.minimum:
            raise ValueError(f"must be {'0, or ' if self.or_zero else ''}at least {self.minimum:g}, not {text}")
        if self.maximum is not None and not float(value) <= self.maximum:
            raise ValueError(f"must be at most {self.maximum:,.0f}, not {text}")
        return value

    def _typed(self, text: str) -> bool | int | float | str:
        if isinstance(self.default, bool):
            if text.lower() not in (*TRUE, *FALSE):
                raise ValueError(f"must be true or false, not {text!r}")
            return text.lower() in TRUE
        if isinstance(self.default, int | float):
            try:
                value = type(self.default)(text)
                if math.isfinite(value):
                    return value
            except ValueError:
                pass
            raise ValueError(f"must be a number of type {type(self.default).__name__}, not {text!r}")
        return text


def parse_options(options: Mapping[str, Option], given: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Values of all options after `name=value` settings, and what is wrong with those."""
    values: dict[str, Any] = {name: option.default for name, option in options.items()}
    faults = []
    for setting in given:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            faults.append(f"--set {setting}: write name=value")
        elif name not in options:
            hint = did_you_mean(name, options) if options else "the method has no options"
            faults.append(f"--set {setting}: no option {name!r}; {hint}")
        else:
            try:
                values[name] = options[name].parse(text)
            except ValueError as error:
                faults.append(f"--set {setting}: {error}")
    return values, faults
