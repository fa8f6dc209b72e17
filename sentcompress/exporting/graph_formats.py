"""The ONNX graphs as export formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentcompress.exporting.dynamic_quantisation import quantise
from sentcompress.exporting.formats import Format
from sentcompress.exporting.graph_reader import GraphReader
from sentcompress.exporting.onnx import FLOAT32_FILE, INT8_FILE, require_packages, require_tokenizer, write_graph
from sentcompress.exporting.static_quantisation import fix_ranges
from sentcompress.exporting.verification import BUILT_IN_SAMPLE, BoundedReader, Vectors, check_inexact
from sentcompress.models.weight_formats import INT8, with_weights

if TYPE_CHECKING:
    from sentcompress.models.encoder import Encoder


DYNAMIC, STATIC = "dynamic", "static"


class OnnxGraph(Format):
    """A float32 graph from tokens to normalised vectors."""

    title = "ONNX float32"
    unit_length = True
    file = FLOAT32_FILE

    def check(self) -> None:
        require_packages()

    def write(self, encoder: Encoder, folder: Path) -> None:
        require_tokenizer(encoder)
        write_graph(encoder, folder / self.file)

    def open(self, encoder: Encoder, folder: Path, *, trust_remote_code: bool) -> GraphReader:
        return GraphReader.of_text(folder, self.file, encoder.text)


class Int8Graph(OnnxGraph):
    """The float32 graph quantised to int8.

    Args:
        weight_format: how its weights are to be stored, int8 or int4.
        texts: texts to find the outliers of activations on.

    Attributes:
        written_weight_format: how its weights are stored, once it is written: int8 if int4 is not possible.
    """

    title = "ONNX int8"
    needs = ("onnx",)
    exact = False
    file = INT8_FILE

    def __init__(self, weight_format: str = INT8, texts: Sequence[str] = BUILT_IN_SAMPLE) -> None:
        self.weight_format = self.written_weight_format = weight_format
        self.texts = texts

    def write(self, encoder: Encoder, folder: Path) -> None:
        tokens = _tokens(encoder, self.texts)
        self.written_weight_format = quantise(
            folder / FLOAT32_FILE, folder / self.file, self.weight_format, tokens, encoder.padding
        )
        self.title += with_weights(self.written_weight_format)

    def calibrate(
        self, encoder: Encoder, folder: Path, texts: Sequence[str], held_out: Sequence[str], expected: Vectors
    ) -> dict[str, Any]:
        """Fix the ranges of activations if the vectors are then nearer to the model's; call it after `write`.

        Args:
            texts: texts to measure the ranges on.
            held_out: texts to compare both graphs on.
            expected: [N, D] the model's own unit vectors of `held_out`.

        Returns:
            Which quantisation was kept, dynamic or static, and the mean cosine of both, in batches and one at a time.
        """
        dynamic, static = folder / self.file, folder / f"{self.file}.static"
        fix_ranges(dynamic, static, _tokens(encoder, texts), encoder.padding)
        found = {}
        for name, path in ((DYNAMIC, dynamic), (STATIC, static)):
            reader = GraphReader.of_text(folder, str(path.relative_to(folder)), encoder.text)
            found[name] = check_inexact(BoundedReader(reader, encoder.tokenize), held_out, expected, self.title)
        exact = {name: (one["mean_cosine"] + one["single_mean_cosine"]) / 2 for name, one in found.items()}
        kept = STATIC if exact[STATIC] > exact[DYNAMIC] else DYNAMIC
        if kept == STATIC:
            static.replace(dynamic)
        else:
            static.unlink()
        return {"quantisation": kept, "calibration_texts": len(texts), "mean_cosine": exact}


def _tokens(encoder: Encoder, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of each text; without special tokens, a text can have none."""
    return [ids or [encoder.padding] for ids in encoder.tokenize(texts)]
