"""The user's additions to a recipe: inputs for its placeholders, and overrides of its options.

Inputs are compared, by their SHA-256, with the files that the recipe's figures were made from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sentcompress.corpora.inputs import is_hub_data
from sentcompress.errors import did_you_mean
from sentcompress.recipes.document import Recipe, Slot, Stage
from sentcompress.recipes.placeholders import FromUser
from sentcompress.store import file_digest

EVERY_STAGE = "all"
# The option that holds the options of a method.
SWITCHES = "set"


def named_values(given: Sequence[str], flag: str, faults: list[str], form: str = "name=value") -> dict[str, list[str]]:
    """The values of `name=value` settings, in order, by name."""
    found: dict[str, list[str]] = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip():
            faults.append(f"{flag} {setting}: write {flag} {form}")
        else:
            found.setdefault(name.strip(), []).append(value)
    return found


def overridden(recipe: Recipe, given: Sequence[str], faults: list[str]) -> Recipe:
    """The recipe with the overrides of `--set STAGE.OPTION=VALUE`; STAGE is a number, a command, or `all`."""
    stages = list(recipe.stages)
    for name, values in named_values(given, "--set", faults, "STAGE.OPTION=VALUE").items():
        where, dot, option = name.partition(".")
        chosen = [place for place, stage in enumerate(stages) if where in (str(stage.number), stage.command)]
        if not dot or not option:
            faults.append(f"--set {name}: write --set STAGE.OPTION=VALUE, such as distill.epochs=1")
        elif not chosen and where != EVERY_STAGE:
            known = [*{stage.command for stage in stages}, EVERY_STAGE]
            # A variant does not have all stages of the file.
            numbers = ", ".join(str(stage.number) for stage in stages)
            hint = f"{did_you_mean(where, known)}; or a number: {numbers}"
            faults.append(f"--set {name}: the recipe has no stage {where!r}; {hint}")
        for place in chosen:
            stages[place] = with_option(stages[place], option, values)
    return replace(recipe, stages=tuple(stages))


def for_every_stage(given: Sequence[str]) -> dict[str, str]:
    """The options of `--set all.OPTION=VALUE`, which apply to every stage that has them."""
    found = named_values(given, "--set", [])
    return {name.partition(".")[2]: values[-1] for name, values in found.items() if name.startswith(f"{EVERY_STAGE}.")}


def with_option(stage: Stage, option: str, values: Sequence[str]) -> Stage:
    """The stage with the user's value of an option, or of an option of its method, `set.NAME`."""
    option = option.replace("_", "-")
    head, dot, switch = option.partition(".")
    if head == SWITCHES and dot:
        table = {**_as_table(stage.values.get(SWITCHES, {})), switch.replace("-", "_"): values[-1]}
        return replace(stage, values={**stage.values, SWITCHES: table})
    given: Any = FromUser(values[0]) if len(values) == 1 else [FromUser(value) for value in values]
    return replace(stage, values={**stage.values, option: given})


def _as_table(switches: Any) -> dict[str, Any]:
    """Options of a method by name, from either of the two notations."""
    if isinstance(switches, Mapping):
        return dict(switches)
    written = switches if isinstance(switches, list) else [switches]
    return {name: value for name, _, value in (str(one).partition("=") for one in written)}


def faults_of_inputs(recipe: Recipe, given: Mapping[str, Sequence[str]], used: set[str]) -> tuple[list[str], list[str]]:
    """Errors in the inputs, and the texts that represent missing inputs and files in other errors."""
    faults, bad = [], []
    for name in given:
        if name not in recipe.inputs:
            hint = did_you_mean(name, recipe.inputs) if recipe.inputs else "it has no inputs"
            faults.append(f"--input {name}: the recipe has no such input; {hint}")
    for name, slot in recipe.inputs.items():
        if name in used and name not in given and not slot.optional:
            faults.append(f"input {name!r} is missing: {slot.about} (--input {name}=...)")
            bad.append(f"${{{name}}}")
    for name, values in given.items():
        for value in values:
            if name in used and not os.path.exists(value) and not is_hub_data(value):
                faults.append(f"input {name!r}: no such file: {value}" if value else f"input {name!r} is empty")
                bad.append(value)
    return faults, bad


def with_folders_opened(recipe: Recipe, given: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The inputs, where a folder stands for the files that the recipe names with their digests, in its order."""
    return {
        name: [path for value in values for path in _files(recipe.inputs.get(name), value)]
        for name, values in given.items()
    }


def _files(slot: Slot | None, value: str) -> Iterator[str]:
    named = [name for name in slot.sha256 if name] if slot else []
    if named and os.path.isdir(value):
        yield from (str(Path(value) / name) for name in named)
    else:
        yield value


def other_inputs(recipe: Recipe, given: Mapping[str, Sequence[str]], used: set[str]) -> list[str]:
    """Messages for inputs that differ from those of the recipe: another digest or order, or a missing file.

    Files that do not exist are left to other checks.
    """
    found: list[str] = []
    for name, slot in recipe.inputs.items():
        if slot.sha256 and name in used and name in given:
            found += _others(name, slot, given[name])
    return found


def _others(name: str, slot: Slot, paths: Sequence[str]) -> Iterator[str]:
    wanted = list(slot.sha256.items())
    for place, path in enumerate(paths):
        if not os.path.isfile(path):
            if os.path.isdir(path) or is_hub_data(path):
                yield f"input {name!r}: {path} is not a file, so its SHA-256 cannot be compared"
            continue
        own, digest = Path(path).name, slot.sha256.get(Path(path).name) or slot.sha256.get("")
        if digest is None:
            yield f"input {name!r}: the recipe names no file {own}"
        elif (found := file_digest(Path(path))) != digest:
            yield f"input {name!r}: {path} has the SHA-256 {found}, but the recipe names {digest}"
        elif place < len(wanted) and wanted[place][0] not in ("", own):
            yield f"input {name!r}: found {own} where the recipe has {wanted[place][0]}"
    given = {Path(path).name for path in paths}
    if missing := [own for own in slot.sha256 if own and own not in given]:
        yield f"input {name!r}: the recipe also needs {', '.join(missing)}"
