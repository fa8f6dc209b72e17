"""Compares the inputs of a recipe with the files that its figures were made from, by their SHA-256."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sentcompress.corpora.inputs import is_hub_data
from sentcompress.recipes.document import Recipe, Slot
from sentcompress.store import file_digest


def with_folders_opened(recipe: Recipe, given: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The inputs, where a folder stands for the files that the recipe names with their digests, in its order."""
    return {
        name: [path for value in values for path in _files(recipe.inputs.get(name), value)]
        for name, values in given.items()
    }


def _files(slot: Slot | None, value: str) -> Iterator[str]:
    named = [name for name in slot.sha256 if name] if slot else []
    if named and os.path.isdir(value):
        yield from (str(Path(value) / name) for name in named)
    else:
        yield value


def other_inputs(recipe: Recipe, given: Mapping[str, Sequence[str]], used: set[str]) -> list[str]:
    """Messages for inputs that differ from those of the recipe: another digest or order, or a missing file.

    Files that do not exist are left to other checks.
    """
    found: list[str] = []
    for name, slot in recipe.inputs.items():
        if slot.sha256 and name in used and name in given:
            found += _others(name, slot, given[name])
    return found


def _others(name: str, slot: Slot, paths: Sequence[str]) -> Iterator[str]:
    wanted = list(slot.sha256.items())
    for place, path in enumerate(paths):
        if not os.path.isfile(path):
            if os.path.isdir(path) or is_hub_data(path):
                yield f"input {name!r}: {path} is not a file, so its SHA-256 cannot be compared"
            continue
        own, digest = Path(path).name, slot.sha256.get(Path(path).name) or slot.sha256.get("")
        if digest is None:
            yield f"input {name!r}: the recipe names no file {own}"
        elif (found := file_digest(Path(path))) != digest:
            yield f"input {name!r}: {path} has the SHA-256 {found}, but the recipe names {digest}"
        elif place < len(wanted) and wanted[place][0] not in ("", own):
            yield f"input {name!r}: found {own} where the recipe has {wanted[place][0]}"
    given = {Path(path).name for path in paths}
    if missing := [own for own in slot.sha256 if own and own not in given]:
        yield f"input {name!r}: the recipe also needs {', '.join(missing)}"
