"""Model folders that ask to run their own code, in all ways that JSON allows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

# What a folder's own modules define, after they have left their mark.
CLASSES = """
from transformers import BertConfig, BertModel, BertTokenizerFast

class OwnConfig(BertConfig):
    pass

class OwnModel(BertModel):
    pass

class OwnTokenizer(BertTokenizerFast):
    pass
"""
FILES = ("tokenizer_config.json", "config.json")
SPELLINGS = ("plain", "escaped", "nested", "first of two", "last of two")


def with_code(model: Path, folder: Path, mark: Path) -> Path:
    """A copy of a model with a module `own.py`, which creates the file `mark` when it is imported."""
    shutil.copytree(model, folder)
    write_code(folder, mark)
    return folder


def write_code(folder: Path, mark: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w').close()\n{CLASSES}", encoding="utf-8")


def ask_for_code(folder: Path, spelling: str, repository: str = "", files: tuple[str, ...] = FILES) -> None:
    """Let a model ask for the classes of `own.py`, of its own folder or of a repository of the hub.

    Args:
        spelling: one of SPELLINGS.
        repository: on the hub, or another folder.
        files: of FILES, those that ask.
    """
    prefix = f"{repository}--" if repository else ""
    asks = {
        "tokenizer_config.json": {"AutoTokenizer": [f"{prefix}own.OwnTokenizer"] * 2},
        "config.json": {"AutoModel": f"{prefix}own.OwnModel"},
    }
    for name in files:
        path = folder / name
        path.write_text(_spelt(json.loads(path.read_text(encoding="utf-8")), asks[name], spelling), encoding="utf-8")


def _spelt(document: dict[str, Any], value: dict[str, Any], spelling: str) -> str:
    if spelling == "nested":
        return json.dumps(document | {"text_config": {"deeper": [{"auto_map": value}]}})
    asking, empty, rest = f'"auto_map": {json.dumps(value)}', '"auto_map": null', json.dumps(document)[1:]
    if spelling == "escaped":
        asking = asking.replace("auto_map", "auto\\u005fmap")
    if spelling == "first of two":
        return f"{{{asking}, {empty}, {rest}"
    return f"{{{empty}, {asking}, {rest}" if spelling == "last of two" else f"{{{asking}, {rest}"
