"""The nodes and constants of an ONNX graph, an `onnx.GraphProto`: finding and replacing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

# The operator that looks up rows of a table.
TABLE = "Gather"


@dataclass(frozen=True)
class Product:
    """A product of an activation and a constant matrix.

    Attributes:
        activation, weight: names of the two factors.
        transposed: whether the matrix is stored as [outputs, inputs], otherwise [inputs, outputs].
    """

    node: Any
    activation: str
    weight: str
    transposed: bool


def constants_of(graph: Any) -> dict[str, Any]:
    """The constants, such as weights, by name."""
    return {constant.name: constant for constant in graph.initializer}


def made_by(graph: Any) -> dict[str, Any]:
    """The node that computes each value, by the value's name."""
    return {name: node for node in graph.node for name in node.output}


def used_by(graph: Any) -> dict[str, Any]:
    """The node that takes each value, by the value's name; of several, the last."""
    return {name: node for node in graph.node for name in node.input}


def products_of(graph: Any) -> Iterator[Product]:
    """The products of a float32 graph whose second factor is a constant matrix."""
    constants = constants_of(graph)
    for node in graph.node:
        if node.op_type in ("MatMul", "Gemm") and len(getattr(constants.get(node.input[1]), "dims", ())) == 2:
            transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            yield Product(node, node.input[0], node.input[1], transposed)


def tables_of(graph: Any) -> set[str]:
    """The names of the lookup tables, such as the token table."""
    return {node.input[0] for node in graph.node if node.op_type == TABLE}


def values_of(constant: Any) -> npt.NDArray[Any]:
    """The values of a constant."""
    from onnx import numpy_helper

    values: npt.NDArray[Any] = numpy_helper.to_array(constant)
    return values


def set_values(constant: Any, values: npt.NDArray[Any]) -> None:
    """Replace the values of a constant, in place."""
    from onnx import numpy_helper

    constant.CopyFrom(numpy_helper.from_array(values, constant.name))


def add_constant(graph: Any, name: str, values: npt.NDArray[Any]) -> None:
    """Add a constant to a graph."""
    from onnx import numpy_helper

    graph.initializer.append(numpy_helper.from_array(values, name))


def set_nodes(graph: Any, nodes: Iterable[Any]) -> None:
    """Replace all nodes of a graph; they are in the order of computing."""
    nodes = list(nodes)
    del graph.node[:]
    graph.node.extend(nodes)
