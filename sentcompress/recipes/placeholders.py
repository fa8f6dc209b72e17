"""`${name}` in a recipe: places for the values of a variant and for the inputs that the user gives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sentcompress.commands.parsing import option_text

PLACEHOLDER = re.compile(r"\$\{([\w-]+)\}")
# What a recipe can give a name to under [values].
Value = str | int | float | bool


class FromUser(str):
    """A value of `--set`: text to be converted to the option's type, without placeholders."""


def placeholders(value: Any) -> Iterator[str]:
    """The names that a value contains as placeholders."""
    if isinstance(value, str) and not isinstance(value, FromUser):
        yield from PLACEHOLDER.findall(value)
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from placeholders(part)


def with_values(value: Any, values: Mapping[str, Value]) -> Any:
    """`value` with the placeholders of a recipe's values replaced; other placeholders remain.

    A text that is one placeholder becomes the value itself, with its type.
    """
    if isinstance(value, list):
        return [with_values(one, values) for one in value]
    if isinstance(value, dict):
        return {key: with_values(one, values) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    whole = PLACEHOLDER.fullmatch(value)
    if whole and whole[1] in values:
        return values[whole[1]]
    return text_with_values(value, values)


def text_with_values(text: str, values: Mapping[str, Value]) -> str:
    """A text with the placeholders of a recipe's values replaced; other placeholders remain."""
    return PLACEHOLDER.sub(lambda match: option_text(values[match[1]]) if match[1] in values else match[0], text)


def filled(value: Any, given: Mapping[str, Sequence[str]]) -> Any:
    """The value with its placeholders replaced by the given inputs; other placeholders remain.

    Raises:
        ValueError: if an input was given several times where only one value is possible.
    """
    if isinstance(value, list):
        return [part for one in value for part in _spread(one, given)]
    if isinstance(value, dict):
        return {key: filled(one, given) for key, one in value.items()}
    if not isinstance(value, str) or isinstance(value, FromUser):
        return value
    return PLACEHOLDER.sub(lambda match: _single(match, given), value)


def _spread(value: Any, given: Mapping[str, Sequence[str]]) -> list[Any]:
    match = PLACEHOLDER.fullmatch(value) if isinstance(value, str) and not isinstance(value, FromUser) else None
    return list(given.get(match[1], [match[0]])) if match else [filled(value, given)]


def _single(match: re.Match[str], given: Mapping[str, Sequence[str]]) -> str:
    values = given.get(match[1], [match[0]])
    if len(values) > 1:
        raise ValueError(f"{match[0]} takes one value, but was given {len(values)} times")
    return values[0]
