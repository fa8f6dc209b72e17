"""Conversion to ONNX, which takes seconds however small the model is, once for each model that tests export."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sentcompress.exporting import onnx as exporting
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import save_encoder
from sentcompress.store import tree_digest

_trace = exporting._trace
# The converted graphs of this process, by the digest of the model's saved files.
_TRACED: dict[str, Any] = {}


@contextmanager
def traced_once() -> Iterator[None]:
    """Inside the block, an export of a model that this process has converted before gets a copy of the same graph.

    Everything else of the export runs: what is made of the graph, its quantisation, its calibration and its checks.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "_trace", _known)
        yield


def _known(encoder: Encoder) -> Any:
    import onnx

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        save_encoder(encoder, folder)
        files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
        digest = tree_digest(files)
    if digest not in _TRACED:
        _TRACED[digest] = _trace(encoder)
    # The exporter changes the graph that it is given.
    copied = onnx.ModelProto()
    copied.CopyFrom(_TRACED[digest])
    return copied
