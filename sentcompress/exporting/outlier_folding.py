"""Folds the outlier factors of attention outputs into the attention values, so that they need no operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sentcompress.exporting.activations import Values
from sentcompress.exporting.graph_cleaning import remove_unused
from sentcompress.exporting.graph_nodes import add_constant, constants_of, made_by, used_by, values_of

# The operators after the Softmax: the weighted mean of the values, two that join the heads, and the product with the
# inverses of the factors.
RESULT = ("MatMul", "Transpose", "Reshape", "Mul")
# Appended to the names of constants that are divided.
DIVIDED = "_divided"


def fold_divisors(model: Any) -> None:
    """Divide attention values instead of attention outputs; changes a dynamically quantised graph in place.

    `scale_outliers` divides activations by a factor for each channel. An attention output is a weighted mean of values,
    whose scales and bias are constants, so dividing these constants needs no operator.
    """
    graph = model.graph
    maker, user, constants = made_by(graph), used_by(graph), constants_of(graph)
    for softmax in [node for node in graph.node if node.op_type == "Softmax"]:
        chain = [softmax]
        for _ in RESULT:
            following = user.get(chain[-1].output[0])
            if following is None:
                break
            chain.append(following)
        if tuple(node.op_type for node in chain[1:]) != RESULT:
            continue
        _, context, _, joined, divided = chain
        factors = _factors(maker, constants, divided.input[1])
        if factors is not None and _divide_values(graph, maker, context.input[1], factors):
            user[divided.output[0]].input[0] = joined.output[0]
    remove_unused(graph)


def _factors(maker: Mapping[str, Any], constants: Mapping[str, Any], inverses: str) -> Values | None:
    """The factors [H], from the name of their inverses; None if these are not computed from a constant."""
    name = inverses
    for kind in ("Reciprocal", "Cast"):
        node = maker.get(name)
        if node is None or node.op_type != kind:
            return None
        name = node.input[0]
    return values_of(constants[name]).astype(np.float32) if name in constants else None


def _divide_values(graph: Any, maker: Mapping[str, Any], heads: str, factors: Values) -> bool:
    """Divide attention values by factors [H], by dividing the scales of the weights and the bias that they come from.

    The values must be Transpose(Reshape(product x (scale of the states x scales of the weights) + bias)).

    Args:
        heads: the name of the values, divided into heads.

    Returns:
        Whether it was possible: the nodes are of this form, and scales and bias are constants.
    """
    chain = []
    name = heads
    for kind, place in (("Transpose", 0), ("Reshape", 0), ("Add", 0), ("Mul", 1), ("Mul", 1)):
        node = maker.get(name)
        if node is None or node.op_type != kind:
            return False
        chain.append(node)
        name = node.input[place]
    changed = (chain[2], chain[-1])
    constants = constants_of(graph)
    if any(node.input[1] not in constants for node in changed):
        return False
    for node in changed:
        divided = node.input[1] + DIVIDED
        if divided not in constants:  # layers that are applied more than once share their weights
            add_constant(graph, divided, values_of(constants[node.input[1]]) / factors)
        node.input[1] = divided
    return True
