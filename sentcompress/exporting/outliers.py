"""Outliers of activations: channels with large values are divided by a factor, and their weights multiplied by it.

An int8 graph quantises each activation in 255 steps from its smallest to its largest value. In BERT and its relatives,
one or two channels of the first token are several times as large as everything else, so that all other values get few
steps. Scaling a channel down and its weights, which are constants, up does not change the product (Xiao et al. 2023,
SmoothQuant, https://arxiv.org/abs/2211.10438). Only a few channels are scaled, because larger weights are quantised in
larger steps: docs/decisions/0014-int8-graphs.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sentcompress.exporting.activations import Values, watched
from sentcompress.exporting.calibration import in_8_bits, whole_range
from sentcompress.exporting.graph_nodes import (
    Product,
    add_constant,
    constants_of,
    products_of,
    set_nodes,
    set_values,
    values_of,
)

# Numbers of channels to scale down, to the largest value of the next one.
TRIED = (1, 2, 4, 8, 16, 32)
# An activation is scaled only if the squared error of its products falls to this share: each costs an operator.
WORTH = 2 / 3
# Token states that the error is measured on, and the most memory for the activations of all of them.
STATES, MEMORY = 1000, 2**28
# The largest code of a weight: see `dynamic_quantisation.quantise`.
LARGEST = 63
LARGEST_FACTOR = 1000


def scale_outliers(model: Any, tokens: Sequence[Sequence[int]], padding: int) -> dict[str, str]:
    """Scale the outliers of a float32 graph, in place.

    Args:
        model: the graph.
        tokens: token ids of texts to measure the activations on.
        padding: the id of the padding token.

    Returns:
        By the name of each matrix that was changed, the name of its factors: a constant in float16 [inputs].
    """
    weights = constants_of(model.graph)
    products = list(products_of(model.graph))
    seen = _activations(model, [one.activation for one in products], tokens, padding)
    factors: dict[str, str] = {}
    divisors: dict[str, str] = {}
    for group in _groups(products):
        matrices = {one.weight: _matrix(weights[one.weight], one.transposed) for one in group}
        activations = list(dict.fromkeys(one.activation for one in group))
        values = np.concatenate([seen[name] for name in activations])
        found = best_factors(values, np.concatenate(list(matrices.values()), axis=1))
        if found is None:
            continue
        name = f"{activations[0]}_factors"
        add_constant(model.graph, name, found.astype(np.float16))
        factors |= dict.fromkeys(matrices, name)
        divisors |= dict.fromkeys(activations, name)
        for one in {one.weight: one for one in group}.values():
            scaled = matrices[one.weight] * found[:, None]
            set_values(weights[one.weight], scaled.T if one.transposed else scaled)
    _divide(model.graph, products, divisors)
    return factors


def _groups(products: Sequence[Product]) -> list[list[Product]]:
    """Products that share activations or, in a layer that is applied more than once, weights."""
    groups: list[list[Product]] = []
    for one in products:
        joined, others = [one], []
        for group in groups:
            shares = any(one.activation == other.activation or one.weight == other.weight for other in group)
            if shares:
                joined = group + joined
            else:
                others.append(group)
        groups = [*others, joined]
    return groups


def _matrix(weight: Any, transposed: bool) -> Values:
    """[inputs, outputs]."""
    values: Values = values_of(weight)
    return values.T if transposed else values


def _divide(graph: Any, products: Sequence[Product], divisors: Mapping[str, str]) -> None:
    """Divide activations before the products that they are part of; other nodes get them as they are."""
    from onnx import TensorProto, helper

    divided = {id(one.node) for one in products if one.activation in divisors}
    made: set[str] = set()
    nodes = []
    for name in dict.fromkeys(divisors.values()):  # computed once, as the graph is opened
        nodes.append(helper.make_node("Cast", [name], [f"{name}_float"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Reciprocal", [f"{name}_float"], [f"{name}_inverse"]))
    for node in graph.node:
        name = node.input[0] if node.input else ""
        if id(node) in divided:
            if name not in made:
                made.add(name)
                nodes.append(helper.make_node("Mul", [name, f"{divisors[name]}_inverse"], [f"{name}_scaled"]))
            node.input[0] = f"{name}_scaled"
        nodes.append(node)
    set_nodes(graph, nodes)


def _activations(model: Any, names: Sequence[str], tokens: Sequence[Sequence[int]], padding: int) -> dict[str, Values]:
    """The values [N, K] of each activation, of the first texts."""
    seen: dict[str, list[Values]] = {name: [] for name in names}
    states = 0
    for found in watched(model, names, tokens, padding):
        for name, values in found.items():
            seen[name].append(values.reshape(-1, values.shape[-1]))
        states += max(len(parts[-1]) for parts in seen.values())
        each = sum(values.nbytes for parts in seen.values() for values in parts) / states
        if states >= min(STATES, MEMORY / each):
            break
    return {name: np.concatenate(parts) for name, parts in seen.items()}


def best_factors(values: Values, weights: Values) -> Values | None:
    """Factors [K] with which the quantised product is nearest to the exact one; None if none is worth an operator.

    Args:
        values: [N, K] activations.
        weights: [K, M].
    """
    exact = values @ weights
    largest = np.abs(values).max(axis=0)
    order = np.sort(largest)[::-1]
    best, least = None, WORTH * _error(values, weights, exact)
    for count in TRIED:
        if count < len(order) and order[count] > 0:
            factors = np.clip(largest / order[count], 1, LARGEST_FACTOR).astype(np.float16).astype(np.float32)
            error = _error(values / factors, weights * factors[:, None], exact)
            if error < least:
                best, least = factors, error
    return best


def _error(values: Values, weights: Values, exact: Values) -> float:
    stored = in_8_bits(values, *whole_range(values))
    steps = np.maximum(np.abs(weights).max(axis=0) / LARGEST, 1e-12)
    return float(np.square(stored @ (np.round(weights / steps) * steps) - exact).mean())
