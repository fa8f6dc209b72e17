"""Declarations of command options.

A command's options are the fields of a frozen dataclass, `Params`, each annotated with an `Opt`:

    dim: Annotated[int, Opt("Dimensions to keep.", minimum=1)] = 128

The command line (`cli.line`), the keys of a recipe (`commands.parsing`), the range checks, the request that decides
whether a result is fresh (`asked`), and the command that a report or model card prints (`commands.spelling`) are
derived from it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from sentcompress.errors import did_you_mean, raise_faults
from sentcompress.numeric import at_least, at_most

_Part = TypeVar("_Part")
MODEL = "model"


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


def named_models(params: Options) -> Iterator[tuple[Key, str | None]]:
    """The options of a command that name a model, and the names; one option can name several, or none."""
    for key in keys_of(type(params)).values():
        if key.opt.names == MODEL:
            value = getattr(params, key.field)
            yield from ((key, name) for name in (value if isinstance(value, tuple) else (value,)))


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
