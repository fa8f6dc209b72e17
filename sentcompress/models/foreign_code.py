"""Detects models that ask to run Python code, before any library reads their files, and refuses them unless trusted.

transformers runs the code of a model that has an `auto_map`, and fetches kernels that a configuration names. All
settings files are searched for such keys, at any depth and including repeated keys, because JSON readers differ in
which one they use. Chat templates (Jinja) are loaded with the tokenizer but never rendered. Pickled weights are opened
as plain tensors only (`tensors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sentcompress.errors import InputError
from sentcompress.json_documents import read_json
from sentcompress.models.model_files import listed_modules, transformer_folder

# Keys that ask for code, at any depth, unless their value is null or false.
ASKING = ("auto_map", "custom_generate", "trust_remote_code", "use_kernels", "kernel_config", "fusion_config")
# Keys whose value can be the name of a kernel on the hub.
CHOOSING = (
    "attn_implementation",
    "_attn_implementation",
    "_attn_implementation_internal",
    "experts_implementation",
    "_experts_implementation",
    "_experts_implementation_internal",
)
BUILT_IN = ("eager", "sdpa", "flex_attention", "batched_mm", "grouped_mm")
# The settings files, in any folder of the model. All other files are vocabularies or weights, or are not read.
SETTINGS = ("*config*.json", "special_tokens_map.json", "added_tokens.json", "modules.json")


def refuse_code(folder: Path, label: str, *, trusted: bool) -> None:
    """Refuse a model that asks to run code, unless the user trusts it.

    Args:
        folder: the folder of the model.
        label: the name to show.
        trusted: whether the user trusts the code, by an option of the command that loads the model.

    Raises:
        InputError: if it asks to run code and is not trusted, or one of its JSON files cannot be read.
    """
    request = None if trusted else asks_for_code(folder)
    if request:
        raise InputError(
            f"{label} wants to run Python code that comes with it ({request})",
            ("read that code first; if you trust it, pass `trust_remote_code`", "choose another model"),
        )


def asks_for_code(folder: Path) -> str | None:
    """The file and key that ask for code, as `config.json: auto_map`; None if there are none.

    Raises:
        InputError: if a JSON file cannot be read.
    """
    for path in _settings_files(folder):
        pairs: list[tuple[str, Any]] = []
        read_json(path, _collecting(pairs))
        for key, value in pairs:
            if (key in ASKING and value not in (None, False)) or (key in CHOOSING and not _is_built_in(value)):
                return f"{path.relative_to(folder)}: {key}"
    return None


@contextmanager
def nothing_fetched() -> Iterator[None]:
    """Block requests to the hub inside this context: everything a model needs is in its folder.

    A second line of defence after `refuse_code`: future releases of transformers may have keys that are not in ASKING.
    """
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _settings_files(folder: Path) -> list[Path]:
    root = transformer_folder(folder)
    places = {folder, root, *(module.path for module in listed_modules(folder))}
    # Some tokenizers consist of two others, each in its own folder inside the transformer's folder.
    places |= {path for path in root.glob("*") if path.is_dir()}
    return sorted({path for place in places for name in SETTINGS for path in place.glob(name) if path.is_file()})


def _collecting(pairs: list[tuple[str, Any]]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def collect(found: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.extend(found)
        return dict(found)

    return collect


def _is_built_in(value: Any) -> bool:
    """Whether an implementation, given for the model or for each of its parts, is built into transformers."""
    parts = value.values() if isinstance(value, dict) else (value,)
    return all(part is None or part in BUILT_IN for part in parts)
