"""Checks a recipe completely before its first stage starts: returns its steps, or all of its errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentcompress.commands.options import Key, Options, keys_of
from sentcompress.commands.parsing import build, from_text
from sentcompress.commands.spelling import spelled, words
from sentcompress.errors import SentcompressError, did_you_mean
from sentcompress.recipes.document import Recipe, Stage
from sentcompress.recipes.inputs import (
    faults_of_inputs,
    for_every_stage,
    named_values,
    other_inputs,
    overridden,
    with_folders_opened,
    with_option,
)
from sentcompress.recipes.placeholders import FromUser, filled, placeholders
from sentcompress.recipes.references import Known, faults_of_references, faults_of_rows


@dataclass(frozen=True)
class Step:
    """One stage, ready to run.

    Attributes:
        number: its position in the recipe, from 1.
        command: the command to run.
        params: an instance of the command's Params.
        words: the words of the command line after `sentcompress`.
    """

    number: int
    command: str
    params: Any
    words: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"stage {self.number} ({self.command})"

    def with_options(self, options: Mapping[str, Any]) -> Step:
        """The step with some of its options changed."""
        if not options:
            return self
        params = replace(self.params, **options)
        return replace(self, params=params, words=tuple(words(params, in_full=True)))


@dataclass(frozen=True)
class Plan:
    """The steps of a recipe.

    Attributes:
        left_out: messages for the stages skipped because an optional input is missing.
        others: messages for the inputs that are not the files the recipe names by digest.
    """

    recipe: Recipe
    steps: tuple[Step, ...]
    left_out: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """The user's additions to the recipe: `name=value` of `--input`, `STAGE.OPTION=VALUE` of `--set`.

    With `exact`, inputs other than those that the recipe names by digest are errors.
    """

    inputs: Sequence[str] = ()
    settings: Sequence[str] = ()
    force: bool = False
    exact: bool = False


def make_plan(recipe: Recipe, asked: Asked, known: Known) -> tuple[Plan, list[str]]:
    """The plan of a recipe and its errors; the plan is complete only if there are none.

    Args:
        recipe: one whose values are filled in, as from `Recipe.of_variant`.
    """
    faults = faults_of_rows(recipe, known)
    recipe = overridden(recipe, asked.settings, faults)
    given = with_folders_opened(recipe, named_values(asked.inputs, "--input", faults))
    stages, left_out = _without_optional(recipe, given, faults)
    used = {name for stage in stages for name in placeholders(dict(stage.values))}
    of_inputs, bad = faults_of_inputs(recipe, given, used)
    faults += of_inputs
    others = other_inputs(recipe, given, used)
    faults += others if asked.exact else []
    stages = _with_settings_for_all(stages, asked.settings, known, faults)
    steps = []
    for stage in stages:
        step, found = _step(stage, given, known, asked.force)
        # Errors in an input were reported already.
        faults += [f"{stage.label}: {fault}" for fault in found if not any(text in fault for text in bad)]
        steps += [step] if step else []
    faults += faults_of_references(stages, known)
    return Plan(recipe, tuple(steps), left_out, tuple(others)), faults


def _without_optional(
    recipe: Recipe, given: Mapping[str, Sequence[str]], faults: list[str]
) -> tuple[list[Stage], tuple[str, ...]]:
    """The stages to run, and messages for those skipped because an optional input is missing."""
    stages, left_out = [], []
    for stage in recipe.stages:
        names = list(dict.fromkeys(placeholders(dict(stage.values))))
        # A value that remains is inside another one, which is told with the values.
        for name in (name for name in names if name not in recipe.inputs and name not in recipe.values):
            names_known = [*recipe.inputs, *recipe.values]
            hint = did_you_mean(name, names_known) if names_known else "declare it under [inputs]"
            faults.append(f"{stage.label}: ${{{name}}} is neither an input nor a value of the recipe; {hint}")
        slots = {name: recipe.inputs[name] for name in names if name in recipe.inputs and name not in given}
        absent = [f"--input {name} ({slot.about})" for name, slot in slots.items() if slot.optional]
        if absent:
            left_out.append(f"{stage.label} is skipped: needs {absent[0]}")
        else:
            stages.append(stage)
    return stages, tuple(left_out)


def _with_settings_for_all(
    stages: list[Stage], settings: Sequence[str], known: Known, faults: list[str]
) -> list[Stage]:
    for option, text in for_every_stage(settings).items():
        name = option.replace("_", "-").partition(".")[0]
        having = [stage.number for stage in stages if name in known.keys(stage.command)]
        if not having:
            faults.append(f"--set all.{option}: no stage has that option")
        stages = [with_option(stage, option, [text]) if stage.number in having else stage for stage in stages]
    return stages


def _step(stage: Stage, given: Mapping[str, Sequence[str]], known: Known, force: bool) -> tuple[Step | None, list[str]]:
    if stage.command not in known.commands:
        return None, [f"no such command; {did_you_mean(stage.command, known.commands)}"]
    params = known.commands[stage.command].params
    keys = keys_of(params)
    try:
        values = {name: filled(value, given) for name, value in stage.values.items()}
    except ValueError as error:
        return None, [str(error)]
    wanted = {name: value for name, value in values.items() if not _taken_away(keys, name, value)}
    values = {name: _typed(keys.get(name), value) for name, value in wanted.items()}
    if force and "force" in keys:
        values["force"] = True
    built, faults = build(params, values)
    faults += _faults_of_params(built) if built else []
    if "shard" in values and "shard" in keys:
        faults.append("a recipe runs whole stages, without `shard`")
    if faults:
        return None, [spelled(fault, params) for fault in faults]
    return Step(stage.number, stage.command, built, tuple(words(built, in_full=True))), []


def _taken_away(keys: Mapping[str, Key], name: str, value: Any) -> bool:
    """Whether `none` means that the option is not given."""
    return value == "none" and name in keys and keys[name].default is None


def _typed(key: Key | None, value: Any) -> Any:
    if key is None or not isinstance(value, FromUser) or key.opt.commas:
        return str(value) if isinstance(value, FromUser) else value
    return from_text(key.item or key.types[0], str(value))


def _faults_of_params(params: Options) -> list[str]:
    try:
        return params.all_faults()
    except SentcompressError as error:
        return [error.message]
