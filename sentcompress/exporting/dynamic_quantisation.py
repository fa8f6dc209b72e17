"""Dynamic int8 quantisation: weights once, activations by the range of each batch as the graph runs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from sentcompress.exporting.graph_cleaning import drop_zero_points, quiet, strip
from sentcompress.exporting.outlier_folding import fold_divisors
from sentcompress.exporting.outliers import scale_outliers
from sentcompress.exporting.packed_weights import pack, round_weights
from sentcompress.models.weight_formats import INT4, INT8


def quantise(
    source: Path,
    target: Path,
    weight_format: str = INT8,
    tokens: Sequence[Sequence[int]] = (),
    padding: int = 0,
) -> str:
    """Quantise the matrix products and embedding tables of an ONNX graph to int8.

    The weights of matrix products have a scale for each output channel, which is more exact than one scale per matrix.
    Only seven of their bits are used, because CPUs without VNNI add pairs of products in 16 bits, which eight-bit
    weights overflow; vectors would then depend on the machine. Embedding tables have one scale and eight bits: their
    rows are looked up, not multiplied.

    Args:
        weight_format: int8 or int4; see `packed_weights`.
        tokens: token ids of texts. 4-bit weights are fitted to them, see `round_weights`, and the outliers of
            activations are found on them, see `scale_outliers`. Without texts, weights are rounded to the nearest, and
            no activation is scaled.
        padding: the id of the padding token.

    Returns:
        The weight format that was written: int8 if no matrix can have 4-bit weights.
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with quiet(), tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as folder:
        # The quantiser leaves temporary files next to its input and its output if it is interrupted.
        unfinished, changed = Path(folder) / target.name, Path(folder) / f"from-{source.name}"
        model = onnx.load(source)
        codes = round_weights(model, tokens, padding) if weight_format == INT4 else {}
        factors = scale_outliers(model, tokens, padding) if tokens else {}
        onnx.save(model, changed)
        quantize_dynamic(changed, unfinished, weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
        model = onnx.load(unfinished)
        strip(model)  # the quantiser records shapes
        onnx.save(model, unfinished)
        if codes:
            pack(unfinished, codes, factors)
        model = onnx.load(unfinished)
        # Not before packing, which uses the scales and zero points of the weights.
        fold_divisors(model)
        drop_zero_points(model)
        onnx.save(model, unfinished)
        unfinished.replace(target)
    return INT4 if codes else INT8
