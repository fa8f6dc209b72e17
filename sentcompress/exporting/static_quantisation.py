"""Static int8 quantisation: fixed ranges of activations, measured on texts, in place of those of each batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sentcompress.exporting.calibration import measured_ranges, scale_of
from sentcompress.exporting.graph_nodes import add_constant, constants_of, made_by, set_nodes, used_by

DYNAMIC = "DynamicQuantizeLinear"


def fix_ranges(source: Path, target: Path, tokens: Sequence[Sequence[int]], padding: int) -> None:
    """Write a dynamically quantised graph with a fixed scale and zero point for every activation.

    The vector of a text then does not depend on the other texts of its batch. A graph without matrix products, as of
    a static model, has no activations, and is written as it is.

    Args:
        source: the graph, written by `dynamic_quantisation.quantise`.
        tokens: token ids of the texts to measure.
        padding: the id of the padding token.
    """
    import onnx

    model = onnx.load(source)
    names = [node.input[0] for node in model.graph.node if node.op_type == DYNAMIC]
    _rewrite(model.graph, measured_ranges(model, names, tokens, padding))
    onnx.save(model, target)


def _rewrite(graph: Any, ranges: Mapping[str, tuple[float, float]]) -> None:
    """Replace each product of integers by a product of dequantised numbers, which runtimes run as one kernel."""
    maker, user, constants = made_by(graph), used_by(graph), constants_of(graph)
    replaced: set[int] = set()
    written: list[Any] = []
    for node in graph.node:
        if node.op_type == DYNAMIC:
            written += _fixed(graph, node, *ranges[node.input[0]])
        elif node.op_type == "MatMulInteger":
            cast = user[node.output[0]]
            product = user[cast.output[0]]
            scales = maker[next(name for name in product.input if name != cast.output[0])]
            replaced |= {id(cast), id(product), id(scales)}
            scale = next(name for name in scales.input if name in constants)
            written += _dequantised_product(node, scale, product.output[0])
        else:
            written.append(node)
    set_nodes(graph, [node for node in written if id(node) not in replaced])


def _fixed(graph: Any, node: Any, low: float, high: float) -> Iterator[Any]:
    """The nodes that quantise an activation with a fixed range, in place of a node that does so by the batch's."""
    from onnx import helper

    quantised, scale, zero = node.output
    step, point = scale_of(low, high)
    add_constant(graph, scale, np.array(step, dtype=np.float32))
    add_constant(graph, zero, np.array(point, dtype=np.uint8))
    yield helper.make_node("QuantizeLinear", [node.input[0], scale, zero], [quantised])
    yield helper.make_node("DequantizeLinear", [quantised, scale, zero], [f"{quantised}_float"])


def _dequantised_product(node: Any, scale: str, output: str) -> Iterator[Any]:
    """The nodes of a product of the same dequantised numbers, in place of a product of integers.

    Args:
        scale: the name of the weight's scales.
        output: the name of the result.
    """
    from onnx import helper

    activation, weight = node.input[:2]
    plain = f"{output}_weight"
    yield helper.make_node("DequantizeLinear", [weight, scale], [plain], axis=1)
    yield helper.make_node("MatMul", [f"{activation}_float", plain], [output])
