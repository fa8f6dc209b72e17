"""The formats that `export` writes: a class each, named in one table. Other packages add more (docs/plugins.md)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from sentcompress import plugins
from sentcompress.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sentcompress.models.encoder import Encoder

FOLDER = "folder"
# Text, so that names can be checked without importing torch.
FORMATS: dict[str, str] = {
    FOLDER: "sentcompress.exporting.folder:Folder",
    "onnx": "sentcompress.exporting.graph_formats:OnnxGraph",
    "int8": "sentcompress.exporting.graph_formats:Int8Graph",
}
ADDED = plugins.plugins(plugins.EXPORTERS, taken=FORMATS)
FORMATS |= {name: plugin.place for name, plugin in ADDED.items()}
# Texts that a reader computes at a time.
BATCH = 32


class Reader(Protocol):
    """Runs what was written."""

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> npt.NDArray[np.float32]:
        """[N, D] vectors of N texts, `batch` of them at a time."""


class Format:
    """A format to write a model in. `export` reads back what was written and compares its vectors with the model's.

    Attributes:
        title: for tables and messages.
        needs: formats that are written before it.
        exact: whether its vectors are the model's but for the rounding of float32, so that others are an error.
        unit_length: whether its vectors have length one even if the model's have not.
        batches: the batch sizes to compare with; those of an inexact format are compared in batches and one by one.
    """

    title: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    exact: ClassVar[bool] = True
    unit_length: ClassVar[bool] = False
    batches: ClassVar[tuple[int, ...]] = (BATCH, 1)

    def check(self) -> None:
        """Raise InputError if a package that it needs is not installed; called before anything is loaded."""

    def write(self, encoder: Encoder, folder: Path) -> None:
        """Write files into a folder that holds the formats that it `needs`, and the sentence-transformers folder."""
        raise NotImplementedError

    def open(self, encoder: Encoder, folder: Path, *, trust_remote_code: bool) -> Reader:
        """A reader of what was written; `encoder` may only be asked for its tokenizer and text settings."""
        raise NotImplementedError


def find_formats(names: Iterable[str]) -> dict[str, Format]:
    """The formats of those names with all that they need, each after what it needs; the folder is always the first.

    Raises:
        InputError: if one is of another package and cannot be loaded, or a package that it needs is missing.
    """
    found: dict[str, Format] = {}

    def add(name: str) -> None:
        if name in found:
            return
        made = _find(name)
        for other in made.needs:
            add(other)
        found[name] = made

    for name in (FOLDER, *names):
        add(name)
    for one in found.values():
        one.check()
    return found


def _find(name: str) -> Format:
    if name not in ADDED:
        module, _, attribute = FORMATS[name].partition(":")
        return getattr(importlib.import_module(module), attribute)()  # type: ignore[no-any-return]
    plugin = ADDED[name]
    kind = plugin.load()
    if not isinstance(kind, type) or not issubclass(kind, Format):
        raise InputError(
            f"{name} of the package {plugin.package} cannot be used: {plugin.place} is not a Format",
            f"update or remove {plugin.package}",
        )
    return kind()


def packages_of(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """For the request of an export: the packages and versions of formats that others add."""
    packages = {name: ADDED[name].package for name in names if name in ADDED}
    return {"packages": packages} if packages else {}
