"""Where the ONNX graphs of a model are: in its own folder, or in an export of it in the work directory."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE
from sentcompress.models.catalog import NamedModel
from sentcompress.store import WorkDirectory, file_digest

FILES = {"onnx": FLOAT32_FILE, "onnx-int8": INT8_FILE}


@dataclass(frozen=True)
class Graphs:
    """A folder with graphs, and what a request records for it."""

    folder: Path
    inputs: Mapping[str, str]


def graphs_can_run() -> bool:
    """Whether onnxruntime is installed."""
    return importlib.util.find_spec("onnxruntime") is not None


def find_graphs(work: WorkDirectory, model: NamedModel) -> Graphs | None:
    """The graphs of this very model, or None. Of several exports, the newest counts."""
    own = {file: model.source.path / file for file in FILES.values()}
    if all(path.is_file() for path in own.values()):
        # The digest of a model folder leaves its graphs out.
        return Graphs(model.source.path, {f"file:{path.resolve()}": file_digest(path) for path in own.values()})
    for export in work.newest("exports"):
        is_of = export.inputs.get(model.reference) == model.digest
        if is_of and all((export.path / file).is_file() for file in FILES.values()):
            return Graphs(export.path, {export.reference: export.digest})
    return None
