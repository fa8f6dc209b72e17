"""The weight formats of an int8 graph: int8, or int4, which a runtime unpacks to int8 when it opens the graph.

Without torch, so that sizes can be computed without it; `int4` rounds weights.
"""

from __future__ import annotations

INT8, INT4 = WEIGHT_FORMATS = ("int8", "int4")
# Weights of a row that share a scale in float16 and a zero point in 4 bits.
BLOCK = 32
# What a weight takes in int4, with its share of scale and zero point.
BITS = 4 + (16 + 4) / BLOCK
WEIGHT_BYTES = {INT8: 1.0, INT4: BITS / 8}
# Smaller matrices, such as the two rows of BERT's token types, are not worth the nodes that unpack them.
FEWEST = 2**14
# A protobuf message, and so a graph with embedded weights, is limited to 2 GiB; the float32 graph is written first.
LARGEST_GRAPH = 2_000_000_000


def with_weights(weight_format: str) -> str:
    """What follows "int8 graph" in messages and tables: how it stores its weights, unless in int8."""
    return " with 4-bit weights" if weight_format == INT4 else ""


def is_packable(shape: tuple[int, ...]) -> bool:
    """Whether a matrix of this shape, with blocks along its second axis, is stored in 4 bits."""
    return len(shape) == 2 and shape[1] % BLOCK == 0 and shape[0] * shape[1] >= FEWEST
