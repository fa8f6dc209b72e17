"""Declarations of command options, and everything derived from them.

A command's options are the fields of a frozen dataclass, `Params`, each annotated with an `Opt`:

    dim: Annotated[int, Opt("Dimensions to keep.", minimum=1)] = 128

The command line (`cli.line`), the keys of a recipe, the range checks, the request that decides whether a result is
fresh (`asked`), and the command that a report or model card prints (`words`) are derived from it.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sentcompress.errors import did_you_mean, raise_faults
from sentcompress.numeric import at_least, at_most

_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a text (a path)"}
_SEVERAL = {int: "whole numbers", float: "numbers", str: "texts", Path: "paths"}
_Part = TypeVar("_Part")
MODEL = "model"
# What every command has on the command line, and a Workspace in Python.
COMMON = ("work",)


@dataclass(frozen=True)
class Opt:
    """One option of a command.

    Attributes:
        help: an imperative or a noun phrase, shown by `--help`.
        flag: its name on the command line and in a recipe, without dashes; by default the field's name.
        short: a one-letter name, without the dash.
        metavar: what `--help` shows for its value.
        minimum, maximum, above, below: bounds of a number; `above` and `below` are exclusive.
        choices: the allowed values, or the import path of a tuple or mapping of them, "package.module:NAME", which is
            imported only for the check.
        reads: the import path of a function, "package.module:name", that reads its text and raises ValueError with what
            is wrong; imported only for the check.
        positional: it has no flag on the command line.
        commas: several values are separated by commas; otherwise the option is repeated.
        affects: `result` if its value is part of the request; `input` if it names something whose digest is part of
            the request; `run` if the result does not depend on it, like the device.
        names: the kind of artifact that its value names, or MODEL.
        default: what `--help` shows for a default of None.
    """

    help: str
    flag: str | None = None
    short: str | None = None
    metavar: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    choices: Sequence[str] | str = ()
    reads: str | None = None
    positional: bool = False
    commas: bool = False
    affects: Literal["result", "input", "run"] = "result"
    names: str | None = None
    default: str | None = None


@dataclass(frozen=True)
class Key:
    """An option of a command: its field, its declaration, its type and its default (or dataclasses.MISSING)."""

    field: str
    opt: Opt
    hint: Any
    default: Any

    @property
    def name(self) -> str:
        """Its name in a recipe and, with two dashes, on the command line."""
        return self.opt.flag or self.field.replace("_", "-")

    @property
    def types(self) -> tuple[Any, ...]:
        """The allowed types, without None."""
        union = get_origin(self.hint) in (Union, UnionType)
        return tuple(kind for kind in (get_args(self.hint) if union else (self.hint,)) if kind is not NoneType)

    @property
    def item(self) -> Any:
        """The type of each value if the option takes several, else None."""
        if get_origin(self.types[0]) is not tuple:
            return None
        items = get_args(self.types[0])[0]
        return str if str in get_args(items) else items

    @property
    def optional(self) -> bool:
        """Whether it may be None."""
        return NoneType in get_args(self.hint)

    def choices(self) -> tuple[str, ...]:
        """The allowed values; empty if any value is allowed."""
        if not isinstance(self.opt.choices, str):
            return tuple(self.opt.choices)
        return tuple(_imported(self.opt.choices))


def _imported(path: str) -> Any:
    """What an import path, "package.module:NAME", names."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of every command's `Params`. `command` is the name of the command."""

    command: ClassVar[str] = ""

    def faults(self) -> list[str]:
        """Errors in the combination of options; ranges are checked separately."""
        return []

    def check(self) -> None:
        """Check every option and their combination.

        Raises:
            UsageError: with all errors.
        """
        raise_faults(self.all_faults(), self.command)

    def all_faults(self) -> list[str]:
        """Errors in each option, then in their combination."""
        return [fault for key in keys_of(type(self)).values() for fault in _faults_of(key, self)] + self.faults()

    def part(self, kind: type[_Part], **others: Any) -> _Part:
        """An instance of the dataclass `kind`, its fields filled from the options of the same names."""
        names = {field.name for field in fields(kind)} - set(others)  # type: ignore[arg-type]
        return kind(**{name: getattr(self, name) for name in names if hasattr(self, name)}, **others)


def keys_of(params: type[Options]) -> Mapping[str, Key]:
    """All options of a command by their names on the command line."""
    if params not in _KEYS:
        _KEYS[params] = _find_keys(params)
    return _KEYS[params]


_KEYS: dict[type[Options], Mapping[str, Key]] = {}


def _find_keys(params: type[Options]) -> Mapping[str, Key]:
    hints = get_type_hints(params, include_extras=True)
    defaults = {field.name: field.default for field in fields(params)}
    # A command's own options come before the shared ones.
    order = dict.fromkeys(name for owner in params.__mro__ for name in vars(owner).get("__annotations__", {}))
    keys = {}
    for name in order:
        if name in defaults:
            hint, opt = get_args(hints[name])
            key = Key(name, opt, hint, defaults[name])
            keys[key.name] = key
    return keys


def _faults_of(key: Key, params: Options) -> Iterator[str]:
    value, opt = getattr(params, key.field), key.opt
    values = [] if value is None else list(value) if key.item is not None else [value]
    known = key.choices() if opt.choices and values else ()
    for one in values:
        if known and one not in known:
            yield f"`{key.field}` {one}: {did_you_mean(str(one), known)}"
        elif isinstance(one, int | float) and not isinstance(one, bool) and not _within(opt, one):
            yield f"`{key.field}` must be {bounds(opt)}, not {one}"
        elif opt.reads and one:
            try:
                _imported(opt.reads)(one)
            except ValueError as error:
                yield f"`{key.field}` {error}"
    if "" in values and not known:
        yield f"`{key.field}` must not be empty"


def _within(opt: Opt, value: float) -> bool:
    lowest = opt.minimum is None or at_least(value, opt.minimum)
    highest = opt.maximum is None or at_most(value, opt.maximum)
    inside = (opt.above is None or value > opt.above) and (opt.below is None or value < opt.below)
    return lowest and highest and inside and value == value and abs(value) != float("inf")


def bounds(opt: Opt) -> str:
    """The range of an option in words."""
    low = f"above {opt.above:g}" if opt.above is not None else ""
    low = f"at least {_figure(opt.minimum)}" if opt.minimum is not None else low
    high = f"below {opt.below:g}" if opt.below is not None else ""
    high = f"at most {_figure(opt.maximum)}" if opt.maximum is not None else high
    if opt.minimum is not None and opt.maximum is not None:
        return f"from {_figure(opt.minimum)} to {_figure(opt.maximum)}"
    return " and ".join(filter(None, (low, high))) or "a finite number"


def _figure(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


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
        several = f"{_SEVERAL[key.item]}, separated by commas" if key.opt.commas else f"a list of such, or {one}"
        if isinstance(value, Mapping) and key.item is str:
            return tuple(f"{name}={_written(one)}" for name, one in value.items())
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
    return kind(value)


def from_text(kind: Any, text: str) -> Any:
    """Parse a text as a value of `kind`, as in TOML; text that cannot be parsed is returned as it is."""
    if kind is bool and text in ("true", "false"):
        return text == "true"
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def asked(params: Options, **resolved: Any) -> dict[str, Any]:
    """The parameters of a request: the options that affect the result and differ from their defaults.

    Args:
        resolved: values that a stage determined, such as the hyperparameters of a method or the reference of a model;
            always included, instead of the option of the same name.
    """
    own = {}
    for key in keys_of(type(params)).values():
        value = getattr(params, key.field)
        if key.opt.affects == "result" and value != key.default and key.field not in resolved:
            own[key.field] = _plain(value)
    return own | resolved


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def words(params: Options, *, in_full: bool = False, **chosen: Any) -> list[str]:
    """The words of a command line, after `sentcompress`, for the same result, without defaults.

    Args:
        in_full: include options that do not affect the result, such as the device.
        chosen: values of options that the stage chose, by field, such as the newest sentence table.
    """
    if unknown := set(chosen) - {field.name for field in fields(params)}:
        raise TypeError(f"{params.command} has no option {unknown}")
    flags: list[str] = []
    first: list[str] = []
    final = dataclasses.replace(params, **{name: value for name, value in chosen.items() if value is not None})
    for key in keys_of(type(params)).values():
        value = getattr(final, key.field)
        if value == key.default or (key.opt.affects == "run" and not in_full):
            continue
        if key.opt.positional:
            first += [str(one) for one in value] if key.item is not None else [str(value)]
        else:
            flags += _flag_words(key, value)
    return [params.command, *first, *flags]


def _flag_words(key: Key, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key.name}"] if value else [f"--no-{key.name}"]
    if key.item is None:
        off = "0" if key.types[0] is float else "none"
        return [f"--{key.name}", off if value is None else str(value)]
    if key.opt.commas:
        return [f"--{key.name}", ",".join(map(_number, value))]
    return [word for one in value for word in (f"--{key.name}", str(one))]


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def spelled(message: str, params: type[Options] | None) -> str:
    """A message as the command line prints it: an option's `field` in backquotes becomes its flag."""
    keys = {key.field: key for key in keys_of(params).values()} if params else {}

    def flag(match: re.Match[str]) -> str:
        key = keys.get(match[1])
        if key is None:
            return f"--{match[1]}" if match[1] in COMMON else match[0]
        return (key.opt.metavar or key.name.upper()) if key.opt.positional else f"--{key.name}"

    return re.sub(r"`([a-z_]+)`", flag, message)
