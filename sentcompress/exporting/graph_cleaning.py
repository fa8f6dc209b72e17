"""Simplifies an ONNX graph before it is written: nodes are removed, or computed in advance."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sentcompress.exporting.graph_nodes import (
    TABLE,
    add_constant,
    constants_of,
    made_by,
    set_nodes,
    values_of,
)

# Operators whose results are values of their first input.
SELECTING = ("Expand", "GatherElements", "Slice")


def fold_transposed_weights(model: Any) -> None:
    """Store transposed weights as they are used, in place of a Transpose node.

    The exporter does this for a weight that is used once. In a model whose layers are reused, the quantiser would take
    such a matrix for an activation, and leave it and its products in float32.
    """
    graph = model.graph
    weights = constants_of(graph)
    for node in [node for node in graph.node if node.op_type == "Transpose" and node.input[0] in weights]:
        order = next((list(found.ints) for found in node.attribute if found.name == "perm"), None)
        add_constant(graph, node.output[0], values_of(weights[node.input[0]]).transpose(order))
        graph.node.remove(node)
    remove_unused(graph)


def fix_token_types(model: Any) -> None:
    """Look up the row of the token type once instead of once per token, because all these rows are the same.

    The exporter looks up the types of all tokens in a constant, by nodes that depend on the length of the text.
    """
    graph = model.graph
    constants, maker = constants_of(graph), made_by(graph)
    for node in graph.node:
        if node.op_type != TABLE or node.input[0] not in constants or len(constants[node.input[0]].dims) != 2:
            continue
        types = node.input[1]
        while types in maker and maker[types].op_type in SELECTING:
            types = maker[types].input[0]
        if types == node.input[1] or types not in constants:
            continue
        distinct = np.unique(values_of(constants[types]))
        users = [user.op_type for user in graph.node if node.output[0] in user.input]
        if len(distinct) == 1 and users == ["Add"]:  # which repeats the row
            node.input[1] = f"{node.output[0]}_type"
            add_constant(graph, node.input[1], distinct.reshape(1, 1))
    remove_unused(graph)


def fix_shapes(model: Any) -> None:
    """Give Reshape nodes constant shapes, in which 0 keeps a size, in place of those computed from the mask's shape.

    It needs the recorded shapes, which `strip` removes.
    """
    from onnx import helper

    graph = model.graph
    constants = constants_of(graph)
    sizes = {
        value.name: [size.dim_value or size.dim_param for size in value.type.tensor_type.shape.dim]
        for value in graph.value_info
    }
    for node in graph.node:
        if node.op_type != "Reshape" or node.input[1] in constants:
            continue
        shape = _constant_shape(sizes.get(node.input[0], []), sizes.get(node.output[0], []))
        if shape is None:
            continue
        name = f"shape_{'_'.join(map(str, shape))}"
        if name not in constants_of(graph):
            add_constant(graph, name, np.array(shape))
        node.CopyFrom(helper.make_node("Reshape", [node.input[0], name], list(node.output), node.name))
    remove_unused(graph)


def _constant_shape(before: list[int | str], after: list[int | str]) -> list[int] | None:
    """The sizes after a Reshape as a constant, 0 for each that is as before; None if another depends on the inputs."""
    same = [at < len(before) and size == before[at] != "" for at, size in enumerate(after)]
    known = [isinstance(size, int) or kept for size, kept in zip(after, same, strict=True)]
    return [size if isinstance(size, int) else 0 for size in after] if after and all(known) else None


def drop_zero_points(model: Any) -> None:
    """Remove the zero points of int8 weights from matrix products; they are zero, which is also the default.

    onnxruntime otherwise takes them for zero points that differ by column, which takes a little more time.
    """
    graph = model.graph
    constants = constants_of(graph)
    for node in graph.node:
        zero = constants.get(node.input[3]) if node.op_type == "MatMulInteger" and len(node.input) == 4 else None
        if zero is not None and not values_of(zero).any():
            del node.input[3]
    remove_unused(graph)


def remove_unused(graph: Any) -> None:
    """Remove nodes and constants that nothing uses."""
    outputs = {output.name for output in graph.output}
    used: set[str] = set()
    kept: list[Any] = []
    for node in reversed(graph.node):  # users come after what they use
        if any(name in used or name in outputs for name in node.output):
            used.update(node.input)
            kept.append(node)
    set_nodes(graph, reversed(kept))
    for constant in [constant for constant in graph.initializer if constant.name not in used | outputs]:
        graph.initializer.remove(constant)


def strip(model: Any) -> None:
    """Remove local paths, names of Python code and recorded shapes.

    If onnxruntime knows the shapes, it fuses additions into SkipLayerNormalization, whose CPU kernel is slower than
    the separate operators: by a sixth of the time of a small float32 model at batch size 32, by a third of an int8 one.
    """
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
        value.doc_string = ""
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]
    del model.metadata_props[:]
    model.doc_string = model.graph.doc_string = ""


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the developer messages of the exporter and the quantiser."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
