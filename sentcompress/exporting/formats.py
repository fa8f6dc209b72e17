"""The registry of export formats, one class each. Other packages can add more (docs/plugins.md)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from sentcompress import plugins

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
# Texts per batch.
BATCH = 32


class Reader(Protocol):
    """Computes vectors with an exported model."""

    def vectors(self, texts: Sequence[str], batch: int = BATCH) -> npt.NDArray[np.float32]:
        """[N, D] vectors of N texts, computed in batches of `batch` texts."""


class Format:
    """An export format. `export` reads back what was written and compares its vectors with the model's.

    Attributes:
        title: name in tables and messages; of the written files, once `write` has returned.
        needs: formats that must be written first.
        exact: whether its vectors equal the model's up to float32 rounding; a larger difference is an error.
        unit_length: whether its vectors are normalised even if the model's are not.
        batches: batch sizes to verify for an exact format; an inexact one is verified in batches and one at a time.
    """

    title: str
    needs: ClassVar[tuple[str, ...]] = ()
    exact: ClassVar[bool] = True
    unit_length: ClassVar[bool] = False
    batches: ClassVar[tuple[int, ...]] = (BATCH, 1)

    def check(self) -> None:
        """Raise InputError if a required package is not installed; called before anything is loaded."""

    def write(self, encoder: Encoder, folder: Path) -> None:
        """Write files into a folder that contains the sentence-transformers files and the formats in `needs`."""
        raise NotImplementedError

    def open(self, encoder: Encoder, folder: Path, *, trust_remote_code: bool) -> Reader:
        """A reader of the written files; it may use only the tokenizer and text settings of `encoder`."""
        raise NotImplementedError


def find_formats(names: Iterable[str]) -> dict[str, Format]:
    """The named formats and those they need, in the order of writing; the folder always comes first.

    Raises:
        InputError: if a format of another package cannot be loaded, or a required package is missing.
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
        raise plugin.unusable(" is not a Format")
    return kind()


def packages_of(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The packages and versions of formats added by plugins, for the request of an export."""
    packages = {name: ADDED[name].package for name in names if name in ADDED}
    return {"packages": packages} if packages else {}
