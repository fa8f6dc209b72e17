"""The int8 graph: weights as int8, activations quantised while it runs (dynamic quantisation)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sentcompress.exporting.onnx import quiet


def quantise(source: Path, target: Path) -> None:
    """Quantise the matrix products and embedding tables of an ONNX graph to int8.

    One scale for each output channel: with one for each matrix, all-MiniLM-L6-v2's vectors keep a mean cosine of
    0.958 to float32, with one a channel 0.991. Seven bits of the eight: processors without VNNI add pairs of
    products in 16 bits, which eight bits overflow; the vectors would depend on the machine.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with quiet(), tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
        # The quantiser leaves files of its own beside its output when it is interrupted.
        unfinished = Path(folder) / target.name
        quantize_dynamic(source, unfinished, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        unfinished.replace(target)
