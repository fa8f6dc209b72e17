"""What is removed from an ONNX graph, or computed in advance, before it is written."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sentcompress.exporting.graph_nodes import add_constant, constants_of, used_by, values_of


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
    used = used_by(graph).keys() | {output.name for output in graph.output}
    for weight in [weight for weight in graph.initializer if weight.name not in used]:
        graph.initializer.remove(weight)


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
