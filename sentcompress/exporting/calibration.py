"""Static int8 quantisation: fixed ranges of activations, measured on texts, in place of those of each batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sentcompress.exporting.graph_cleaning import quiet
from sentcompress.exporting.graph_reader import INPUTS
from sentcompress.extras import require
from sentcompress.models.token_batches import padded

Values = npt.NDArray[np.float32]
# Values kept of each activation to choose its range by.
SAMPLE = 2**17
# Shares of the largest range that are tried: outliers may be cut off so that the other values are more exact.
SHRINKINGS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
LEVELS = 255
SMALLEST_STEP = 1e-12
DYNAMIC = "DynamicQuantizeLinear"


def fix_ranges(source: Path, target: Path, tokens: Sequence[Sequence[int]], padding: int) -> None:
    """Write a dynamically quantised graph with a fixed scale and zero point for every activation.

    The vector of a text then does not depend on the other texts of its batch. A graph without matrix products, as of
    a static model, has no activations, and is written as it is.

    Args:
        source: the graph, written by `onnx.quantise`.
        tokens: token ids of the texts to measure.
        padding: the id of the padding token.
    """
    import onnx

    model = onnx.load(source)
    names = [node.input[0] for node in model.graph.node if node.op_type == DYNAMIC]
    _rewrite(model.graph, _measure(model, names, tokens, padding))
    onnx.save(model, target)


def _rewrite(graph: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Replace each product of integers by a product of dequantised numbers, which runtimes run as one kernel."""
    from onnx import helper, numpy_helper

    nodes = list(graph.node)
    made_by = {output: node for node in nodes for output in node.output}
    used_by = {name: node for node in nodes for name in node.input}
    weights = {weight.name for weight in graph.initializer}
    replaced: set[int] = set()
    written: list[Any] = []
    for node in nodes:
        if node.op_type == DYNAMIC:
            low, high = ranges[node.input[0]]
            quantised, scale, zero = node.output
            step = max((high - low) / LEVELS, SMALLEST_STEP)
            point = np.array(np.clip(round(-low / step), 0, LEVELS), dtype=np.uint8)
            graph.initializer.append(numpy_helper.from_array(np.array(step, dtype=np.float32), scale))
            graph.initializer.append(numpy_helper.from_array(point, zero))
            parameters = [scale, zero]
            written.append(helper.make_node("QuantizeLinear", [node.input[0], *parameters], [quantised]))
            written.append(helper.make_node("DequantizeLinear", [quantised, *parameters], [f"{quantised}_float"]))
        elif node.op_type == "MatMulInteger":
            activation, weight, _, zero = node.input
            cast = used_by[node.output[0]]
            product = used_by[cast.output[0]]
            scales = made_by[next(name for name in product.input if name != cast.output[0])]
            replaced |= {id(cast), id(product), id(scales)}
            scale = next(name for name in scales.input if name in weights)
            plain = f"{product.output[0]}_weight"
            written.append(helper.make_node("DequantizeLinear", [weight, scale, zero], [plain], axis=1))
            written.append(helper.make_node("MatMul", [f"{activation}_float", plain], [product.output[0]]))
        else:
            written.append(node)
    del graph.node[:]
    graph.node.extend(node for node in written if id(node) not in replaced)


def _measure(model: Any, names: Sequence[str], tokens: Sequence[Sequence[int]], padding: int) -> dict[str, Any]:
    """The range of each activation."""
    random = np.random.default_rng(0)
    seen: dict[str, list[Values]] = {name: [] for name in names}
    most = max(1, SAMPLE // len(tokens))
    for found in watched(model, names, tokens, padding):
        for name, values in found.items():
            flat = values.ravel()
            drawn = flat if len(flat) <= most else random.choice(flat, most, replace=False)
            seen[name].append(np.concatenate([drawn, [flat.min(), flat.max()]]).astype(np.float32))
    return {name: best_range(np.concatenate(parts)) for name, parts in seen.items()}


def watched(
    model: Any, names: Sequence[str], tokens: Sequence[Sequence[int]], padding: int
) -> Iterator[dict[str, Values]]:
    """The values that a graph computes under these names, for one text after another; nothing if there are no names."""
    import onnx

    distinct = list(dict.fromkeys(names))
    if not distinct:  # then onnxruntime would return every output
        return
    onnxruntime = require("onnxruntime")
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    copied.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in distinct)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with quiet():
        session = onnxruntime.InferenceSession(copied.SerializeToString(), options, providers=["CPUExecutionProvider"])
    for ids in tokens:
        values = session.run(distinct, dict(zip(INPUTS, padded([ids], padding), strict=True)))
        yield dict(zip(distinct, values, strict=True))


def best_range(values: Values) -> tuple[float, float]:
    """The range, which always has zero, that 8 bits store the values in with the smallest squared error."""
    low, high = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    tried = [(low * down, high * up) for down in SHRINKINGS for up in SHRINKINGS]
    return min(tried, key=lambda ends: float(np.square(values - in_8_bits(values, *ends)).mean()))


def in_8_bits(values: Values, low: float, high: float) -> Values:
    """The values as 8 bits store them with this range, which has zero."""
    step = max((high - low) / LEVELS, SMALLEST_STEP)
    point = round(-low / step)
    stored: Values = (np.clip(np.round(values / step) + point, 0, LEVELS) - point) * step
    return stored
