"""Recipes: TOML files with the published result they reproduce, the inputs they need, and their stages."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError, did_you_mean

TOP_KEYS = ("title", "paper", "row", "inputs", "stage")
ROW_KEYS = ("table", "model", "parameters", "metric", "score", "note")
INPUT_KEYS = ("about", "optional")
# TOML files that are not recipes.
NO_RECIPES = ("pyproject.toml",)
LARGEST_RECIPE = 2**16
# Characters of a value that an error shows.
SHOWN = 80


@dataclass(frozen=True)
class Slot:
    """An input that the user provides, `${name}` in the stages. Stages without their optional input are skipped."""

    about: str
    optional: bool = False


@dataclass(frozen=True)
class Stage:
    """One `[[stage]]` as written in the file; `values` are the command's options by their long names."""

    number: int
    command: str
    values: Mapping[str, Any] = field(default_factory=dict)

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
        row: the published result to reach: `table`, `model`, `parameters`, `metric`, `score`, `note`.
        inputs: the inputs that the user provides.
        stages: in the order in which they run.
    """

    path: Path
    title: str
    paper: str
    row: Mapping[str, Any]
    inputs: Mapping[str, Slot]
    stages: tuple[Stage, ...]


def read_recipe(path: Path) -> tuple[Recipe, list[str]]:
    """Read a recipe; returns it without its invalid parts, and the errors in its form.

    Raises:
        InputError: if there is no such file, or it is not TOML.
    """
    document = _toml(path)
    faults = _unknown(document, TOP_KEYS, "")
    title, paper = (_text(document, key, faults) for key in ("title", "paper"))
    row = document.get("row", {})
    if isinstance(row, dict):
        faults += [*_unknown(row, ROW_KEYS, "row: "), *_faults_of_row(row)]
    else:
        faults.append("row must be a table: [row]")
        row = {}
    inputs = _inputs(document.get("inputs", {}), faults)
    stages = _stages(document.get("stage"), faults)
    return Recipe(path, title, paper, row, inputs, stages), faults


def _faults_of_row(row: Mapping[str, Any]) -> list[str]:
    score = row.get("score", 0)
    is_number = isinstance(score, int | float) and math.isfinite(score)
    faults = [] if is_number else [f"row: score must be a finite number, not {str(score)[:SHOWN]}"]
    texts = {key: value for key, value in row.items() if key in ROW_KEYS and key != "score"}
    return faults + [f"row: {key} must be a text" for key, value in texts.items() if not isinstance(value, str)]


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
        faults.append(f"{key} must be a text")
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
            faults.append(f"inputs: {name} must be a text or a table, not {given!r}")
            continue
        faults += _unknown(entry, INPUT_KEYS, f"inputs: {name}: ")
        about, optional = entry.get("about", ""), entry.get("optional", False)
        if not isinstance(about, str) or not isinstance(optional, bool):
            faults.append(f"inputs: {name}: about must be a text, optional true or false")
            continue
        slots[name] = Slot(about, optional)
    return slots


def _stages(tables: Any, faults: list[str]) -> tuple[Stage, ...]:
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        faults.append("there are no stages; write at least one [[stage]]")
        return ()
    stages = []
    for number, table in enumerate(tables, start=1):
        command = table.get("command")
        if not isinstance(command, str):
            faults.append(f'stage {number}: no command; write, for example, command = "distill"')
            continue
        # Options may be written with underscores.
        values = {key.replace("_", "-"): value for key, value in table.items() if key != "command"}
        stages.append(Stage(number, command, values))
    return tuple(stages)
