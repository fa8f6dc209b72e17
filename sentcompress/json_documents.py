"""JSON documents: reading reports every error as an InputError; writing turns NaN and infinity into null."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError

# The largest JSON documents are tokenizers with several hundred thousand tokens.
LARGEST_DOCUMENT = 256 * 2**20
# Builds the value of one JSON object from its key-value pairs, in order, including repeated keys.
MakeObject = Callable[[list[tuple[str, Any]]], Any]
BROKEN = "fix the file, or copy it again from its source"


def read_json(path: Path, make_object: MakeObject | None = None) -> Any:
    """Read a JSON file.

    Args:
        make_object: builds the value of an object; by default a dict, in which the last of two equal keys wins.

    Raises:
        InputError: if there is no such file, it is larger than LARGEST_DOCUMENT, is not UTF-8, is not JSON, or is
            nested too deeply to be read.
    """
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise InputError(f"{path} is a device or a pipe, not a JSON file", "name a file")
        if found.st_size > LARGEST_DOCUMENT:
            raise InputError(f"{path} is larger than {LARGEST_DOCUMENT} bytes", "name a JSON file of at most that size")
        return parse_json(path.read_bytes(), str(path), make_object)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path} is missing", "copy or download the folder again, with all its files") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a JSON file", "name a file") from None


def write_json(path: Path, document: Any) -> None:
    """Write a document to a file as `to_json` formats it, with a newline at the end."""
    path.write_text(to_json(document) + "\n", encoding="utf-8")


def parse_json(text: str | bytes, place: str, make_object: MakeObject | None = None) -> Any:
    """Parse a JSON document; `place` names it in errors, `make_object` is as in `read_json`.

    Raises:
        InputError: if it is not UTF-8, is not JSON, or is nested too deeply to be read.
    """
    try:
        # json.loads would guess UTF-16 or UTF-32 from bytes.
        decoded = text if isinstance(text, str) else text.decode("utf-8-sig")
        return json.loads(decoded, object_pairs_hook=make_object)
    except UnicodeDecodeError as error:
        raise InputError(f"{place} is not UTF-8 (byte {error.start + 1})", BROKEN) from None
    except ValueError as error:
        raise InputError(f"{place} is not valid JSON: {error}", BROKEN) from None
    except RecursionError:
        raise InputError(f"{place} is nested too deeply to be read as JSON", BROKEN) from None


def to_json(document: Any, *, indent: int | None = 1, ascii_only: bool = True) -> str:
    """A document as JSON with sorted keys; NaN and infinity, which JSON cannot express, become null."""
    return json.dumps(finite(document), indent=indent, sort_keys=True, ensure_ascii=ascii_only, allow_nan=False)


def finite(value: Any) -> Any:
    """The document with NaN and infinity replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value
