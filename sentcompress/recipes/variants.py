"""The variants of a recipe: the same stages with other values, each with the published rows that it aims at."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sentcompress.errors import did_you_mean
from sentcompress.recipes.placeholders import Value, placeholders, text_with_values
from sentcompress.recipes.rows import SHOWN, Row, read_rows

VARIANT_KEYS = ("name", "values", "row")
_NAME = re.compile(r"[\w.-]+")


@dataclass(frozen=True)
class Variant:
    """One `[[variant]]`.

    Attributes:
        name: what the user asks for.
        values: the values that it changes.
        rows: the published figures that it aims at.
    """

    name: str
    values: Mapping[str, Value]
    rows: tuple[Row, ...]


def read_values(table: Any, where: str, faults: list[str]) -> dict[str, Value]:
    """The values in a table; errors go to `faults`, and begin with `where`."""
    if not isinstance(table, dict):
        faults.append(f"{where}values must be a table of texts, numbers, true and false")
        return {}
    values: dict[str, Value] = {}
    for name, value in table.items():
        is_value = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
        if not _NAME.fullmatch(name):
            faults.append(f"{where}values: {name[:SHOWN]!r} cannot be a name: use letters, digits, - and _")
        elif not is_value:
            faults.append(f"{where}values: {name} must be a string, a finite number, true or false")
        else:
            values[name] = value
    return values


def read_variants(tables: Any, values: Mapping[str, Value], faults: list[str]) -> dict[str, Variant]:
    """The variants in a list of tables, by name; errors go to `faults`.

    Args:
        values: the values of the recipe, which a variant changes.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        faults.append("variant must be a list of tables: [[variant]]")
        return {}
    variants: dict[str, Variant] = {}
    for number, table in enumerate(tables, start=1):
        name = table.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            what = (
                "no name" if name is None else f"{str(name)[:SHOWN]!r} cannot be a name (letters, digits, ., - and _)"
            )
            faults.append(f'variant {number}: {what}; write, for example, name = "minilm-128"')
            continue
        where = f"variant {name}: "
        if name in variants:
            faults.append(f"{where}there are two variants of that name")
        strange = [key for key in table if key not in VARIANT_KEYS]
        faults += [f"{where}no key {key!r}; {did_you_mean(key, VARIANT_KEYS)}" for key in strange]
        own = read_values(table.get("values", {}), where, faults)
        unknown = [key for key in own if key not in values]
        faults += [f"{where}{key} {not_a_value(key, values)}" for key in unknown]
        variants[name] = Variant(name, own, read_rows(table.get("row", []), where, faults))
    return variants


def not_a_value(name: str, values: Mapping[str, Value]) -> str:
    """What is wrong with a name that is not that of a value, and a hint."""
    hint = did_you_mean(name, values) if values else "declare it under [values]"
    return f"is not among the values of the recipe; {hint}"


def faults_of_texts(texts: Mapping[str, str], values: Mapping[str, Value]) -> list[str]:
    """Errors for placeholders that no value fills, in texts that are no options of a stage.

    Args:
        texts: where the text is -> the text.
    """
    return [
        f"{where}: ${{{name}}} {not_a_value(name, values)}"
        for where, text in texts.items()
        for name in dict.fromkeys(placeholders(text))
        if name not in values
    ]


def filled_row(row: Row, values: Mapping[str, Value]) -> Row:
    """The row with the placeholders in its texts replaced by values."""
    texts: dict[str, Any] = {
        key: text_with_values(value, values) for key, value in row.as_dict().items() if isinstance(value, str)
    }
    return replace(row, **texts)


def texts_of_rows(rows: tuple[Row, ...], where: str) -> dict[str, str]:
    """Where each text of some rows is -> the text, for `faults_of_texts`."""
    return {
        f"{where}row {number}: {key}": value
        for number, row in enumerate(rows, start=1)
        for key, value in row.as_dict().items()
        if isinstance(value, str)
    }
