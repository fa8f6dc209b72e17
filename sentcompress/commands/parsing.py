"""The options of a command from the texts of a command line, the values of a recipe, or keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any

from sentcompress.commands.options import Key, Options, keys_of
from sentcompress.errors import did_you_mean, raise_faults

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", Path: "a string (a path)"}
# NumPy, torch and Arrow hold whole numbers of 64 bits, and a float none of more than 308 digits.
LARGEST = 2**63 - 1
_SEVERAL = {int: "whole numbers", float: "numbers", str: "strings", Path: "paths"}


def build(params: type[Options], values: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Make a Params from values; returns it with the errors found, or None if a required option is missing.

    Wrong values are omitted, so that the rest can be checked.
    """
    keys, faults = keys_of(params), []
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in keys:
            faults.append(f"no option {name!r}; {did_you_mean(name, keys)}")
            continue
        try:
            found[keys[name].field] = _value(keys[name], value)
        except ValueError as error:
            faults.append(f"`{keys[name].field}` must be {error}, not {value!r}")
    required = [key for key in keys.values() if key.default is MISSING]
    faults += [f"`{key.field}` is missing" for key in required if key.name not in values]
    return (params(**found) if all(key.field in found for key in required) else None), faults


def checked(params: type[Options], given: Mapping[str, Any]) -> Any:
    """Make a Params from the texts of a command line, by the names of the options.

    Raises:
        UsageError: with all errors.
    """
    keys = keys_of(params)
    values = {name: _read(keys[name], value) if name in keys else value for name, value in given.items()}
    made, faults = build(params, values)
    raise_faults([*faults, *(made.all_faults() if made else [])], params.command)
    return made


def of_fields(params: type[Options], given: Mapping[str, Any]) -> Any:
    """The Params that keyword arguments describe, by the names of the fields.

    None stands for the default where that is None; a single value for a list of one.

    Raises:
        UsageError: that lists every fault.
    """
    keys = {key.field: key for key in keys_of(params).values()}
    faults = [f"no option `{field}`; {did_you_mean(field, keys)}" for field in given if field not in keys]
    values = {
        keys[field].name: _texts_of_paths(value)
        for field, value in given.items()
        if field in keys and not (value is None and keys[field].default is None)
    }
    made, wrong = build(params, values)
    hint = f"see help(sentcompress.Workspace.{params.command.replace('-', '_')})"
    raise_faults([*faults, *wrong, *(made.all_faults() if made else [])], params.command, hint)
    return made


def _texts_of_paths(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_texts_of_paths(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def _read(key: Key, value: Any) -> Any:
    kind = key.item or key.types[0]
    if isinstance(value, list):
        return [from_text(kind, one) for one in value]
    return from_text(kind, value) if isinstance(value, str) and not key.opt.commas else value


def _value(key: Key, value: Any) -> Any:
    """`value` with the type of the option; raises ValueError with the expected type."""
    if key.item is not None:
        one = _NAMES[key.item]
        several = f"{_SEVERAL[key.item]}, separated by commas" if key.opt.commas else f"{one}, or a list of them"
        if isinstance(value, Mapping) and key.item is str:
            return tuple(f"{name}={option_text(one)}" for name, one in value.items())
        return tuple(_one(part, key.item, several) for part in _parts(key, value))
    if _means_none(key, value):
        return None
    kinds = key.types
    kind = str if str in kinds else kinds[0]
    return _one(value, kind, _NAMES[kind])


def _means_none(key: Key, value: Any) -> bool:
    """Whether a value disables an option with a default: `none`, or 0 for a number."""
    on = key.optional and key.default is not None
    return on and (value is None or value == "none" or (key.types[0] is float and value == 0))


def _parts(key: Key, value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str) and key.opt.commas:
        return [from_text(key.item, part.strip()) for part in value.split(",") if part.strip()]
    return [value]


def _one(value: Any, kind: Any, wanted: str) -> Any:
    allowed = {float: (int, float), Path: (str, Path)}.get(kind, (kind,))
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(wanted)
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ValueError(f"{wanted} below 2^63")
    if kind is Path and value == "":  # which would be the current folder
        raise ValueError("a path")
    return kind(value)


def from_text(kind: Any, text: str) -> Any:
    """Parse a text as a value of `kind`, as in TOML; text that cannot be parsed is returned as it is."""
    if kind is bool and text in ("true", "false"):
        return text == "true"
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def option_text(value: Any) -> str:
    """A value as it is typed on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)
