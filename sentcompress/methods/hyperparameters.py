"""Hyperparameters and options of a method, each with the source of its default. Does not import torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from sentcompress.errors import did_you_mean

# A source begins with one of these words, followed by the place in the paper, the file, or the reason.
PAPER = "paper"
CODE = "released code"
OURS = "ours"
# The source of a value that a script does not set itself.
TRAINER = "the default of transformers' Trainer"
TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0")


Value = float | int | str | None


@dataclass(frozen=True)
class Sized:
    """A hyperparameter's value for models of a certain size, and its source.

    Attributes:
        measure: what is measured: `parameters`, or `width`, that of the hidden states.
        at_least, below: the limits of the size; None: no limit.
    """

    value: Value
    source: str
    measure: Literal["parameters", "width"]
    at_least: int | None = None
    below: int | None = None

    def fits(self, size: int) -> bool:
        """Whether it holds for a model of that size; 0 is an unknown size, for which it does not."""
        return size > 0 and (self.at_least or 0) <= size and (self.below is None or size < self.below)

    @property
    def condition(self) -> str:
        """The limits in words, such as `below 100,000,000 parameters`."""
        of = {"parameters": "parameters", "width": "wide"}[self.measure]
        least = "" if self.at_least is None else f"{self.at_least:,} {of} and more"
        below = "" if self.below is None else f"below {self.below:,} {of}"
        return ", ".join(filter(None, (least, below)))


@dataclass(frozen=True)
class Number:
    """A hyperparameter's value and its source; `sized` replaces both for models of its size."""

    value: Value
    source: str
    sized: Sized | None = None

    def as_dict(self) -> dict[str, Any]:
        """Value and source, for JSON; `sized` only if there is one."""
        told: dict[str, Any] = {"value": self.value, "source": self.source}
        if self.sized:
            condition = {"condition": self.sized.condition}
            told["sized"] = condition | {"value": self.sized.value, "source": self.sized.source}
        return told


# Defaults for every method.
_ADAMW_BETAS = Number("0.9 0.999", "AdamW's own defaults")
_NO_WARMUP = Number(0, "not stated")
_LONG_TEXT = Number(
    256,
    f"{OURS}: batches hold texts of similar length, so long texts cost little, and without them retrieval gets worse"
    " (the scripts of SimCSE, DistilCSE and IBKD cut at 32, 64 and 128 tokens)",
)


@dataclass(frozen=True)
class Hyperparameters:
    """A method's default hyperparameters.

    Attributes:
        lr: peak learning rate.
        epochs: passes over the training rows.
        batch_size: sentences per step.
        schedule: `cosine` or `linear` (both decay to zero), or `constant`.
        warmup_steps, warmup_epochs: linear warm-up in steps or in epochs; the longer one applies.
        weight_decay: AdamW's weight decay, on matrices only.
        clip: clip the global gradient norm to this; 0 disables clipping.
        betas: AdamW's two betas, separated by a space.
        max_length: tokens read per sentence in training.
        dropout: None keeps the value of the student's checkpoint.
        eval_every: steps between dev scores; None: four times per epoch.
        patience: stop after this many epochs without a better dev score; None: never.
    """

    lr: Number
    epochs: Number
    batch_size: Number
    schedule: Number
    warmup_steps: Number = _NO_WARMUP
    warmup_epochs: Number = _NO_WARMUP
    weight_decay: Number = Number(0.01, "AdamW's usual value; not stated")
    clip: Number = Number(1.0, f"{OURS}: the usual value; not stated")
    betas: Number = _ADAMW_BETAS
    max_length: Number = _LONG_TEXT
    dropout: Number = Number(None, "the checkpoint's own; not stated")
    eval_every: Number = Number(None, f"{OURS}: four times per epoch")
    patience: Number = Number(None, "never; not stated")

    def values(self) -> dict[str, Any]:
        """Values by name."""
        return {field.name: getattr(self, field.name).value for field in fields(self)}

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Values and sources by name, for JSON."""
        return {field.name: getattr(self, field.name).as_dict() for field in fields(self)}

    def for_size(self, *, parameters: int = 0, width: int = 0) -> Hyperparameters:
        """A copy for a model of that size; 0 is an unknown size, for which a number keeps its own value."""
        sizes = {"parameters": parameters, "width": width}
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: _fitting(number, sizes) for name, number in numbers.items()})

    def overridden(self, values: Mapping[str, Any], sources: Mapping[str, str]) -> Hyperparameters:
        """A copy with some values replaced, and the sources of those that differ; None keeps a value."""
        given = {
            name: Number(value, f"{sources[name]}; default: {getattr(self, name).value}")
            for name, value in values.items()
            if value is not None and value != getattr(self, name).value
        }
        return replace(self, **given)


def _fitting(number: Number, sizes: Mapping[str, int]) -> Number:
    sized = number.sized
    if sized and sized.fits(sizes[sized.measure]):
        return Number(sized.value, sized.source)
    return Number(number.value, number.source)


@dataclass(frozen=True)
class Option:
    """An option of a method, set with `--set name=value`.

    Attributes:
        default: also determines the option's type.
        help: what it does.
        source: where the default comes from, and who uses other values.
        choices: the allowed values of a text option.
        minimum, maximum: the allowed range of a number.
        or_zero: whether 0 is also allowed, as a sentinel outside the range.
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
        """Parse and check a value.

        Raises:
            ValueError: if it is invalid; the message is meant for the user.
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
            except (ValueError, OverflowError):  # the latter: a whole number beyond the range of float
                pass
            raise ValueError(f"must be a number of type {type(self.default).__name__}, not {text!r}")
        return text


def parse_options(options: Mapping[str, Option], given: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Apply `name=value` settings to the defaults; returns the values of all options and the errors found."""
    values: dict[str, Any] = {name: option.default for name, option in options.items()}
    faults = []
    for setting in given:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            faults.append(f"`options` {setting}: write name=value")
        elif name not in options:
            hint = did_you_mean(name, options) if options else "the method has no options"
            faults.append(f"`options` {setting}: no option {name!r}; {hint}")
        else:
            try:
                values[name] = options[name].parse(text)
            except ValueError as error:
                faults.append(f"`options` {setting}: {error}")
    return values, faults
