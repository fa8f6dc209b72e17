"""The examples in docstrings print what they say, where they need neither a model nor a file."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "corpora.byte_streams",
    "corpora.delimited",
    "corpora.mixing",
    "numeric",
    "passages.sentences",
    "passages.words",
)


@pytest.mark.parametrize("name", MODULES)
def test_an_example_is_true(name: str) -> None:
    found = doctest.testmod(import_module(f"sentcompress.{name}"))
    assert found.attempted
    assert not found.failed
