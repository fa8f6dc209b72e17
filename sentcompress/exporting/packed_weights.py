"""An int8 graph whose weights are stored in 4 bits, and unpacked to int8 when a runtime opens the graph.

A graph's int8 weights are constants. Here, each of them is computed from codes, two per byte, by standard operators
whose inputs are constants. onnxruntime runs these operators once, when it opens the graph. The file is therefore
smaller, and the graph is as fast as with int8 weights; opening it takes some tenths of a second longer. Operators that
multiply 4-bit weights without unpacking (MatMulNBits) are not standard, and not every runtime has them
(docs/decisions/0014-int8-graphs.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from sentcompress.exporting.activations import watched
from sentcompress.exporting.graph_nodes import (
    Product,
    add_constant,
    constants_of,
    products_of,
    set_nodes,
    set_values,
    tables_of,
    values_of,
)
from sentcompress.models.int4 import FITTED_TO, Blocks, blocks_of, fitted
from sentcompress.models.weight_formats import BLOCK, is_packable

# What onnxruntime's quantiser appends to the name of a weight.
QUANTISED, SCALE, ZERO_POINT = "_quantized", "_scale", "_zero_point"
LOW, SHIFT = "int4_low", "int4_shift"


def round_weights(model: Any, tokens: Sequence[Sequence[int]], padding: int) -> dict[str, Blocks]:
    """Round the matrices and tables of a float32 graph to 4 bits, in place; returns the codes by name.

    A matrix is rounded so that errors cancel out on the activations of a sample, see `int4.fitted`. Weights that
    were trained in 4 bits stay as they are.

    Args:
        model: the graph.
        tokens: token ids of the sample's texts; without any, all weights are rounded to the nearest.
        padding: the id of the padding token.
    """
    from onnx import TensorProto

    # Blocks are along the axis of a table's vectors, or the axis that a product sums over.
    products = list(products_of(model.graph))
    in_rows = tables_of(model.graph) | {one.weight for one in products if one.transposed}
    in_columns = {one.weight for one in products if not one.transposed}
    moments = _moments(model, products, tokens, padding)
    found = {}
    for weight in model.graph.initializer:
        if weight.name not in in_rows | in_columns or weight.data_type != TensorProto.FLOAT:
            continue
        values = values_of(weight)
        rows = torch.from_numpy(np.ascontiguousarray(values if weight.name in in_rows else values.T))
        if is_packable(tuple(rows.shape)):
            known = moments.get(weight.name)
            found[weight.name] = codes = blocks_of(rows if known is None else fitted(rows, known))
            rounded = codes.decoded().numpy()
            set_values(weight, rounded if weight.name in in_rows else rounded.T)
    return found


def _moments(
    model: Any, products: Sequence[Product], tokens: Sequence[Sequence[int]], padding: int
) -> dict[str, torch.Tensor]:
    """The second moments of what each matrix is multiplied with, [K, K], by its name."""
    chosen = [tokens[at] for at in np.linspace(0, len(tokens) - 1, min(FITTED_TO, len(tokens))).round().astype(int)]
    by_activation: dict[str, torch.Tensor] = {}
    for seen in watched(model, [one.activation for one in products], chosen, padding):
        for name, values in seen.items():
            rows = torch.from_numpy(values.reshape(-1, values.shape[-1]))
            by_activation[name] = by_activation.get(name, torch.zeros(())) + (rows.T @ rows).double()
    found: dict[str, torch.Tensor] = {}
    for one in products:
        if one.activation in by_activation:
            found[one.weight] = found.get(one.weight, torch.zeros(())) + by_activation[one.activation]
    return found


def pack(path: Path, codes: Mapping[str, Blocks], factors: Mapping[str, str]) -> None:
    """Replace the int8 weights of a quantised graph by codes and the nodes that unpack them, in place.

    Args:
        codes: from `round_weights`, applied to the float32 graph that was quantised.
        factors: names of constants, from `scale_outliers`, applied to it afterwards.
    """
    import onnx

    model = onnx.load(path)
    packing = _Packing(model.graph)
    for name, blocks in codes.items():
        packing.replace(name, blocks, factors.get(name))
    packing.finish()
    onnx.save(model, path)


class _Packing:
    """The nodes and constants that are added to a graph."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._weights, self._tables = constants_of(graph), tables_of(graph)
        self._nodes: list[Any] = []
        self._constants: set[str] = set()
        self._constant(LOW, np.array(15, np.uint8))
        self._constant(SHIFT, np.array(4, np.uint8))

    def replace(self, name: str, blocks: Blocks, factors: str | None) -> None:
        """Compute the int8 weight of that name from its codes and the factors of its inputs."""
        from onnx import TensorProto

        made = self._weights.get(name + QUANTISED)
        if made is None:  # the quantiser has left it in float32
            return
        rows, columns = blocks.codes.shape
        codes, scales, zeros = (part.numpy() for part in blocks)
        if made.name in self._tables:
            whole, ends, axis = (rows, columns // BLOCK, BLOCK), (rows, columns // BLOCK, 1), 0
        else:
            whole, ends, axis = (columns // BLOCK, BLOCK, rows), (columns // BLOCK, 1, rows), 1
            codes, scales, zeros = codes.T, scales.T, zeros.T
        unpacked = [
            self._unpacked(f"{name}_codes", codes, whole),
            self._unpacked(f"{name}_zeros", zeros, ends),
        ]
        scale = self._node("Cast", [self._constant(f"{name}_scales", scales.reshape(ends))], to=TensorProto.FLOAT)
        steps = self._node("Sub", unpacked)
        values = self._reshaped(self._node("Mul", [steps, scale]), codes.shape)
        if factors is not None:
            cast = self._node("Cast", [factors], to=TensorProto.FLOAT)
            values = self._node("Mul", [values, self._reshaped(cast, (columns, 1))])
        by_column = {"axis": axis} if self._weights[name + SCALE].dims else {}
        self._node("QuantizeLinear", [values, name + SCALE, name + ZERO_POINT], made.name, **by_column)
        self._graph.initializer.remove(made)

    def finish(self) -> None:
        """Put the new nodes in front of the others."""
        set_nodes(self._graph, [*self._nodes, *self._graph.node])

    def _unpacked(self, name: str, values: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> str:
        """Store 4-bit values, two per byte; returns the name of the unpacked values, float32 in this shape."""
        from onnx import TensorProto

        flat = np.ascontiguousarray(values).ravel()
        half = -(-len(flat) // 2)
        low, high = flat[:half], np.zeros(half, np.uint8)
        high[: len(flat) - half] = flat[half:]
        packed = self._constant(name, low | high << 4)
        first = self._node("BitwiseAnd", [packed, LOW])
        second = self._node("BitShift", [packed, SHIFT], direction="RIGHT")
        joined = self._node("Concat", [first, second], axis=0)
        if len(flat) % 2:
            ends = [self._constant(f"{name}_{what}", np.array([at])) for what, at in (("0", 0), ("n", len(flat)))]
            joined = self._node("Slice", [joined, *ends])
        return self._reshaped(self._node("Cast", [joined], to=TensorProto.FLOAT), shape)

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        return self._node("Reshape", [name, self._constant(f"int4_{'_'.join(map(str, shape))}", np.array(shape))])

    def _constant(self, name: str, values: npt.NDArray[Any]) -> str:
        if name not in self._constants:
            self._constants.add(name)
            add_constant(self._graph, name, values)
        return name

    def _node(self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        output = output or f"int4_node_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output
