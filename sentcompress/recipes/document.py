"""Recipes: TOML files with inputs, stages, and the published results that they reproduce."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError, UsageError, did_you_mean
from sentcompress.quantities import counted
from sentcompress.recipes.placeholders import Value, placeholders, text_with_values, with_values
from sentcompress.recipes.rows import Row, read_rows
from sentcompress.recipes.variants import (
    Variant,
    faults_of_texts,
    filled_row,
    not_a_value,
    read_values,
    read_variants,
    texts_of_rows,
)

TOP_KEYS = ("title", "paper", "values", "variant", "row", "inputs", "stage")
INPUT_KEYS = ("about", "optional", "sha256")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Keys of a stage that are not options of its command.
COMMAND, CONDITION = "command", "if"
# TOML files that are not recipes.
NO_RECIPES = ("pyproject.toml",)
LARGEST_RECIPE = 2**17


@dataclass(frozen=True)
class Slot:
    """An input that the user provides, `${name}` in the stages. Stages without their optional input are skipped.

    Attributes:
        sha256: file name -> digest, in the order in which the files are read; of what the recipe's figures were made
            from. Empty if the recipe names none.
    """

    about: str
    optional: bool = False
    sha256: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """One `[[stage]]` as written in the file.

    Attributes:
        number: its position in the file, from 1.
        values: the command's options by their long names.
        condition: values of the recipe; the stage is skipped if one of them is false, 0 or empty.
    """

    number: int
    command: str
    values: Mapping[str, Any] = field(default_factory=dict)
    condition: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"stage {self.number} ({self.command})"


@dataclass(frozen=True)
class Recipe:
    """A sequence of stages.

    Attributes:
        path: the file.
        title: what it produces.
        paper: the paper that it reproduces.
        rows: the published figures to compare with.
        inputs: the inputs that the user provides.
        stages: in the order in which they run.
        values: values of the placeholders that are not inputs; a value can contain others.
        variants: the variants by name; if there are any, the recipe runs only as one of them.
        variant: the name of the variant that it is.
    """

    path: Path
    title: str
    paper: str
    rows: tuple[Row, ...]
    inputs: Mapping[str, Slot]
    stages: tuple[Stage, ...]
    values: Mapping[str, Value] = field(default_factory=dict)
    variants: Mapping[str, Variant] = field(default_factory=dict)
    variant: str | None = None

    @property
    def name(self) -> str:
        """The file and the variant, as they are given to `run`."""
        return str(self.path) + (f" --variant {self.variant}" if self.variant else "")

    def of_variant(self, name: str | None) -> Recipe:
        """The recipe with its values filled in: its stages and rows are those of one variant.

        Args:
            name: the variant; None for a recipe without variants.

        Raises:
            UsageError: if there is no such variant, or none was given and there are some.
        """
        if name is None and self.variants:
            listed = f"choose one of: {', '.join(self.variants)}"
            raise UsageError(
                f"{self.path} has {counted(len(self.variants), 'variant')}; name one with `variant`", listed
            )
        if name is not None and name not in self.variants:
            hint = did_you_mean(name, self.variants) if self.variants else "leave `variant` out"
            raise UsageError(f"{self.path} has no variant {name!r}", hint)
        variant = self.variants[name] if name is not None else Variant("", {}, self.rows)
        values = {**self.values, **variant.values}
        values = {name: with_values(value, values) for name, value in values.items()}
        return replace(
            self,
            title=text_with_values(self.title, values),
            rows=tuple(filled_row(row, values) for row in variant.rows),
            stages=tuple(
                replace(stage, values=with_values(dict(stage.values), values), condition=())
                for stage in self.stages
                if all(values[name] for name in stage.condition)
            ),
            values=values,
            variants={},
            variant=name,
        )


def read_recipe(path: Path) -> tuple[Recipe, list[str]]:
    """Read a recipe; returns it without its invalid parts, and the errors in its form and in that of every variant.

    Raises:
        InputError: if there is no such file, or it is not TOML.
    """
    document = _toml(path)
    faults = _unknown(document, TOP_KEYS, "")
    title, paper = (_text(document, key, faults) for key in ("title", "paper"))
    values = read_values(document.get("values", {}), "", faults)
    variants = read_variants(document.get("variant", []), values, faults)
    rows = read_rows(document.get("row", []), "", faults)
    if rows and variants:
        faults.append("row: a recipe with variants has its rows in them: [[variant.row]]")
    inputs = _inputs(document.get("inputs", {}), faults)
    stages = _stages(document.get("stage"), values, faults)
    recipe = Recipe(
        path=path, title=title, paper=paper, rows=rows, inputs=inputs, stages=stages, values=values, variants=variants
    )
    return recipe, faults + _faults_of_values(recipe)


def _faults_of_values(recipe: Recipe) -> list[str]:
    """Errors for values that are inputs too, or used nowhere, and for placeholders without a value."""
    texts = {"title": recipe.title, **texts_of_rows(recipe.rows, "")}
    for variant in recipe.variants.values():
        texts |= texts_of_rows(variant.rows, f"variant {variant.name}: ")
    used = {name for text in texts.values() for name in placeholders(text)}
    used |= {name for stage in recipe.stages for name in (*stage.condition, *placeholders(dict(stage.values)))}
    # A value can be made of others, and can be an input.
    tables = (recipe.values, *(variant.values for variant in recipe.variants.values()))
    inside = {name for table in tables for name in placeholders(dict(table))}
    used |= inside
    strange = sorted(inside - {*recipe.values, *recipe.inputs})
    unknown = [f"values: ${{{name}}} is neither a value nor an input" for name in strange]
    unknown += dict.fromkeys(fault for table in tables for fault in _faults_of_depth({**recipe.values, **table}))
    both = [f"{name} is both an input and a value" for name in recipe.values if name in recipe.inputs]
    unused = [f"values: {name} is used nowhere" for name in recipe.values if name not in used]
    return [*faults_of_texts(texts, recipe.values), *both, *unused, *unknown]


def _faults_of_depth(values: Mapping[str, Value]) -> Iterator[str]:
    """Errors for values made of values that are made of others: placeholders are filled once."""
    for name, value in values.items():
        for part in placeholders(value):
            if deeper := next((one for one in placeholders(values.get(part)) if one in values), None):
                fill = f"write the text of {part} in its place"
                yield f"values: {name} contains ${{{part}}}, which contains ${{{deeper}}}; {fill}"


def _toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        folder = path if path.is_dir() else path.parent
        known = sorted(found.name for found in folder.glob("*.toml") if found.name not in NO_RECIPES)
        hint = did_you_mean(path.name, known) if known else "a recipe is a TOML file: see docs/run.md"
        what = f"{path} is a folder, not a recipe" if path.is_dir() else f"no recipe {path}"
        raise InputError(what, hint)
    with path.open("rb") as file:
        content = file.read(LARGEST_RECIPE + 1)
    if len(content) > LARGEST_RECIPE:
        raise InputError(f"{path} is larger than {LARGEST_RECIPE} bytes", "a recipe is a TOML file: see docs/run.md")
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = {UnicodeDecodeError: "it is not UTF-8 text", RecursionError: "it is nested too deeply"}.get(
            type(error), str(error)
        )
        raise InputError(f"{path} is not valid TOML: {reason}", "a recipe is a TOML file: see docs/run.md") from None


def _unknown(table: Iterable[str], known: tuple[str, ...], where: str) -> list[str]:
    return [f"{where}no key {key!r}; {did_you_mean(key, known)}" for key in table if key not in known]


def _text(document: Mapping[str, Any], key: str, faults: list[str]) -> str:
    value = document.get(key, "")
    if key == "title" and key not in document:
        faults.append("title is missing")
        return ""
    if not isinstance(value, str) or (key == "title" and not value):
        faults.append(f"{key} must be a string")
        return ""
    return value


def _inputs(table: Any, faults: list[str]) -> dict[str, Slot]:
    if not isinstance(table, dict):
        faults.append("inputs must be a table: [inputs]")
        return {}
    slots = {}
    for name, given in table.items():
        entry = {"about": given} if isinstance(given, str) else given
        if not isinstance(entry, dict):
            faults.append(f"inputs: {name} must be a string or a table, not {given!r}")
            continue
        faults += _unknown(entry, INPUT_KEYS, f"inputs: {name}: ")
        about, optional = entry.get("about", ""), entry.get("optional", False)
        if not isinstance(about, str) or not isinstance(optional, bool):
            faults.append(f"inputs: {name}: about must be a string, optional true or false")
            continue
        slots[name] = Slot(about, optional, _digests(entry.get("sha256", {}), name, faults))
    return slots


def _digests(given: Any, name: str, faults: list[str]) -> dict[str, str]:
    """File name -> SHA-256; a digest without a file name is that of an input of one file."""
    table = {"": given} if isinstance(given, str) else given
    if isinstance(table, dict) and all(isinstance(one, str) and _SHA256.fullmatch(one) for one in table.values()):
        return table
    faults.append(f"inputs: {name}: sha256 must be 64 hexadecimal digits, or a table of file names with theirs")
    return {}


def _stages(tables: Any, known: Mapping[str, Value], faults: list[str]) -> tuple[Stage, ...]:
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        faults.append("there are no stages; write at least one [[stage]]")
        return ()
    stages = []
    for number, table in enumerate(tables, start=1):
        command = table.get(COMMAND)
        if not isinstance(command, str):
            faults.append(f'stage {number}: no command; write, for example, command = "distill"')
            continue
        condition = _condition(table.get(CONDITION, []), known, f"stage {number} ({command}): ", faults)
        # Options may be written with underscores.
        values = {key.replace("_", "-"): value for key, value in table.items() if key not in (COMMAND, CONDITION)}
        stages.append(Stage(number, command, values, condition))
    return tuple(stages)


def _condition(given: Any, known: Mapping[str, Value], where: str, faults: list[str]) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        faults.append(f"{where}if must be the name of a value, or a list of names")
        return ()
    faults += [f"{where}if: {name} {not_a_value(name, known)}" for name in names if name not in known]
    return tuple(name for name in names if name in known)
