"""Options as the command line spells them: whole commands, and the fields that a message names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from sentcompress.commands.options import Key, Options, keys_of
from sentcompress.errors import OR

# What every command has on the command line, and a Workspace in Python.
COMMON = ("work",)
DEFAULT_WORK = "work"
# The field of an option in a message.
OPTION = re.compile(r"`([a-z_]+)`")


def words(params: Options, *, in_full: bool = False, **chosen: Any) -> list[str]:
    """The words of a command line, after `sentcompress`, for the same result, without defaults.

    Args:
        in_full: include options that do not affect the result, such as the device.
        chosen: values of options that the stage chose, by field, such as the newest sentence table.

    Raises:
        TypeError: if the command has no option of a name in `chosen`.
    """
    if unknown := set(chosen) - {field.name for field in fields(params)}:
        raise TypeError(f"{params.command} has no option {unknown}")
    flags: list[str] = []
    first: list[str] = []
    final = replace(params, **{name: value for name, value in chosen.items() if value is not None})
    for key in keys_of(type(params)).values():
        value = getattr(final, key.field)
        if value == key.default or (key.opt.affects == "run" and not in_full):
            continue
        if key.opt.positional:
            first += [str(one) for one in value] if key.item is not None else [str(value)]
        else:
            flags += _flag_words(key, value)
    return [params.command, *first, *flags]


def work_words(work: str | Path) -> list[str]:
    """The words that name a work directory; none for the default one."""
    return [] if str(work) == DEFAULT_WORK else ["--work", str(work)]


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

    return OPTION.sub(flag, message)


def spelled_hint(alternatives: Iterable[str], params: type[Options] | None) -> str | None:
    """A hint as the command line prints it: as `spelled`, without alternatives that the command has no option for.

    None if nothing of the hint is left.
    """
    known = {*(key.field for key in keys_of(params).values()), *COMMON} if params else None
    kept = [one for one in alternatives if known is None or known.issuperset(OPTION.findall(one))]
    return spelled(OR.join(kept), params) or None
