"""Names of artifacts."""

from __future__ import annotations

import re

from sentcompress.errors import InputError


def fault_of_name(name: str) -> str | None:
    """Why an artifact cannot have this name, as a hint; None if it can."""
    if not name.strip() or name.startswith(".") or any(c in name for c in "/\\"):
        return "use letters, digits, dots and dashes"
    if not name.isprintable():
        return "remove the unprintable characters"
    # File systems count bytes, and the hidden folders next to it have longer names.
    return "use a shorter one" if len(name.encode("utf-8")) > 200 else None


def name_part(text: str, most: int = 120) -> str:
    """A label turned into part of an artifact's name, at most `most` characters long; may be empty."""
    return re.sub(r"[^\w.-]+", "-", text)[:most].strip("-.")


def check_name(name: str) -> None:
    """Raise InputError if an artifact cannot have this name."""
    if fault := fault_of_name(name):
        raise InputError(f"{name!r} cannot be the name of an artifact", fault)


def read_name(name: str) -> None:
    """Raise ValueError if an artifact cannot have this name, which is that of an option."""
    if fault := fault_of_name(name):
        raise ValueError(f"{name!r} cannot be the name of an artifact: {fault}")
