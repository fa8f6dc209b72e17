"""The ONNX graphs as export formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sentcompress.exporting.formats import Format
from sentcompress.exporting.graph_reader import GraphReader
from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE, quantise, require_packages, write_graph

if TYPE_CHECKING:
    from sentcompress.models.encoder import Encoder


class OnnxGraph(Format):
    """A float32 graph from tokens to normalised vectors."""

    title = "ONNX float32"
    unit_length = True
    file = FLOAT32_FILE

    def check(self) -> None:
        require_packages()

    def write(self, encoder: Encoder, folder: Path) -> None:
        write_graph(encoder, folder / self.file)

    def open(self, encoder: Encoder, folder: Path, *, trust_remote_code: bool) -> GraphReader:
        text = encoder.text
        return GraphReader(folder, self.file, prepare=text.prepare, max_length=text.max_length)


class Int8Graph(OnnxGraph):
    """The float32 graph quantised to int8."""

    title = "ONNX int8"
    needs = ("onnx",)
    exact = False
    file = INT8_FILE

    def write(self, encoder: Encoder, folder: Path) -> None:
        quantise(folder / FLOAT32_FILE, folder / self.file)
