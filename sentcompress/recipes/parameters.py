"""From the options of a stage, as a recipe has them, to the stage's Params, and to what one would type instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from sentcompress.errors import did_you_mean

# Fields of Params that the command line spells otherwise.
SPELLINGS = {
    "options": "set",
    "numbers.checkpoint_seconds": "checkpoint-every",
    "columns": "column",
    "rules.count": "negatives",
}
SWITCHES = "set"
# What stands on the command line without an option's name.
POSITIONAL = "inputs"
# Options that take several values with commas between them; all others are repeated.
WITH_COMMAS = ("layers", "index", "only", "runtimes", "weights")
_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a text (a path)"}


@dataclass(frozen=True)
class Key:
    """One option of a stage.

    Attributes:
        name: as a recipe and the command line have it, without the dashes.
        places: the fields that lead to it in the Params: ("dim",) or ("numbers", "lr"); it goes to all of its name.
        hint: the type of that field.
        default: its default, or dataclasses.MISSING.
    """

    name: str
    places: tuple[tuple[str, ...], ...]
    hint: Any
    default: Any

    @property
    def types(self) -> tuple[Any, ...]:
        """The types allowed, without None."""
        union = get_origin(self.hint) in (Union, UnionType)
        return tuple(kind for kind in (get_args(self.hint) if union else (self.hint,)) if kind is not NoneType)

    @property
    def item(self) -> Any:
        """The type of one value of an option that takes several; None for one that takes a single value."""
        if get_origin(self.types[0]) not in (tuple, Sequence):
            return None
        items = get_args(self.types[0])[0]
        return str if str in get_args(items) else items


def keys_of(params: type) -> dict[str, Key]:
    """Every option of a stage, by name."""
    keys: dict[str, Key] = {}
    for key in _keys(params, ()):
        before = keys[key.name].places if key.name in keys else ()
        keys[key.name] = replace(key, places=before + key.places)
    return keys


def _keys(owner: type, place: tuple[str, ...]) -> Iterator[Key]:
    hints = get_type_hints(owner)
    for field in fields(owner):
        hint = hints[field.name]
        if isinstance(hint, type) and is_dataclass(hint):
            yield from _keys(hint, (*place, field.name))
        else:
            path = (*place, field.name)
            name = SPELLINGS.get(".".join(path), field.name.replace("_", "-"))
            default = field.default_factory() if field.default_factory is not MISSING else field.default
            yield Key(name, (path,), hint, default)


def build(params: type, values: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """The Params that `values` describe, and what is wrong with these.

    What is wrong is left out of the Params, so that they can be checked for the rest; they are None where something is
    missing that they cannot do without.
    """
    keys, faults = keys_of(params), []
    found: dict[tuple[str, ...], Any] = {}
    for name, value in values.items():
        if name not in keys:
            faults.append(f"no option {name!r}; {did_you_mean(name, keys)}")
            continue
        try:
            found |= dict.fromkeys(keys[name].places, _value(keys[name], value))
        except ValueError as error:
            faults.append(f"{name} must be {error}, not {value!r}")
    required = [key for key in keys.values() if key.default is MISSING]
    faults += [f"it needs {key.name!r}" for key in required if key.name not in values]
    whole = all(key.places[0] in found for key in required)
    return (_assembled(params, found, ()) if whole else None), faults


def _assembled(owner: type, found: Mapping[tuple[str, ...], Any], place: tuple[str, ...]) -> Any:
    inner = {path[len(place)] for path in found if path[: len(place)] == place}
    values = {
        name: found[(*place, name)]
        if (*place, name) in found
        else _assembled(get_type_hints(owner)[name], found, (*place, name))
        for name in inner
    }
    return owner(**values)


def _value(key: Key, value: Any) -> Any:
    """`value` as the field wants it. Raises ValueError that says what it must be."""
    if key.name == SWITCHES and isinstance(value, Mapping):
        return tuple(f"{name}={_written(one)}" for name, one in value.items())
    if key.item is not None:
        return tuple(_one(part, key.item, "a list of such, or ") for part in _parts(key, value))
    if _means_none(key, value):
        return None
    kinds = key.types
    return _one(value, str if str in kinds else kinds[0], "")


def _means_none(key: Key, value: Any) -> bool:
    """Whether a value says "none of it" to an option that is on by default; a number says so with 0."""
    optional = NoneType in get_args(key.hint) and key.default is not None
    return optional and (value == "none" or (key.types[0] is float and value == 0))


def _parts(key: Key, value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, str) and key.name in WITH_COMMAS:
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return [_number(key.item, part) for part in parts]
    return [value]


def _number(kind: Any, text: str) -> Any:
    """What a text stands for where numbers are wanted; one that is none stays text, and `_one` refuses it."""
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def _one(value: Any, kind: Any, several: str) -> Any:
    allowed = {float: (int, float), Path: (str,)}.get(kind, (kind,))
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(several + _NAMES[kind])
    return kind(value)


def from_text(key: Key, text: str) -> Any:
    """What a text stands for, as TOML would have it; what cannot be read stays text and is told by `build`."""
    readers: dict[Any, Callable[[str], Any]] = {int: int, float: float}
    if key.types[0] is bool and text in ("true", "false"):
        return text == "true"
    try:
        return readers.get(key.types[0], str)(text)
    except ValueError:
        return text


def command_words(params: type, values: Mapping[str, Any]) -> list[str]:
    """The words of a command line that asks for the same as `values`, which `build` found right."""
    keys, words, first = keys_of(params), [], []
    for name, value in values.items():
        key = keys[name]
        if key.types[0] is bool:
            words += [f"--{name}"] if value else [f"--no-{name}"] if key.default else []
        elif name == SWITCHES:
            words += [word for part in _value(key, value) for word in (f"--{name}", part)]
        elif name == POSITIONAL:
            first = [str(part) for part in _parts(key, value)]
        elif key.item is not None and name not in WITH_COMMAS:
            words += [word for part in _parts(key, value) for word in (f"--{name}", str(part))]
        else:
            nothing = _means_none(key, value) and key.types[0] is float
            parts = _parts(key, value) if key.item is not None else [0 if nothing else value]
            words += [f"--{name}", ",".join(map(str, parts))]
    return [*first, *words]


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
