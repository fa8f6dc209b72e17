"""The examples in docstrings print what they say, where they need neither a model nor a file."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import sentcompress

MODULES = (
    "corpora.byte_streams",
    "quantities",
    "corpora.mixing",
    "numeric",
    "passages.sentences",
    "passages.words",
)
# Their examples need a model, a work directory or a file of the reader's.
WITH_FILES = ("", "encoding.vector_folder", "errors", "evaluation.results", "quantization.quantizer", "workspace")


def test_every_module_with_an_example_is_listed() -> None:
    package = Path(sentcompress.__file__).parent
    found = {path.relative_to(package) for path in package.rglob("*.py") if ">>>" in path.read_text(encoding="utf-8")}
    names = {".".join(path.with_suffix("").parts).removesuffix("__init__") for path in found}
    assert names == {*MODULES, *WITH_FILES}


@pytest.mark.parametrize("name", MODULES)
def test_an_example_is_true(name: str) -> None:
    found = doctest.testmod(import_module(f"sentcompress.{name}"))
    assert found.attempted
    assert not found.failed
