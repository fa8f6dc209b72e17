"""The size of an int8 graph before it is exported, computed from a model's configuration.

A weight of a matrix takes one byte, or 0.58 bytes if weights are stored in 4 bits; every other parameter takes four
bytes. In int8, the estimate differs by at most 0.4% from the graphs of all-MiniLM-L6-v2, the published students and
shapes cut from them. In 4 bits, it is larger than these graphs by 0.2 to 0.7%, and by 1.7% for general-2m.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from sentcompress.models.model_files import whole_number
from sentcompress.models.weight_formats import BLOCK, INT4, INT8, WEIGHT_BYTES, is_packable

# Bytes of the operators of a graph: for each application of a layer, and the rest. Those of int8 are fitted to the
# graphs of all-MiniLM-L6-v2 and the published students. Those of int4 are an upper bound (they take 12,000 to 17,500),
# because a student that turns out larger than allowed has been trained in vain.
OPERATORS, GRAPH = {INT8: 3_300, INT4: 20_000}, 11_000


@dataclass(frozen=True)
class TransformerSize:
    """The sizes of a transformer, from its configuration, and which of its parts can be made smaller.

    Attributes:
        layers: number of layers.
        width: width of the hidden states.
        neurons: number of neurons in each feed-forward network.
        tokens, positions: size of the vocabulary and of the position table.
        vector: D, the width of its vectors.
        table: width of its token and position tables; 0: that of the hidden states.
        distinct_layers: number of layers with weights of their own; 0 for all. ALBERT's layers share theirs.
        can_cut: whether layers and neurons can be removed.
        can_factorise: whether its token table can be made narrower.
        can_trim: whether tokens can be removed from its vocabulary.
        counted: bytes of the int8 graph of the whole model if they were counted, see `counted_bytes`; otherwise 0.
    """

    layers: int
    width: int
    neurons: int
    tokens: int
    positions: int
    vector: int
    table: int = 0
    distinct_layers: int = 0
    can_cut: bool = True
    can_factorise: bool = True
    can_trim: bool = True
    counted: int = 0

    @property
    def own_bytes(self) -> int:
        """The bytes of the int8 graph of the whole model."""
        return self.counted or self.graph_bytes()

    @classmethod
    def of(cls, config: dict[str, Any], vector: int, **can: bool) -> TransformerSize | None:
        """The sizes in a configuration; None if it lacks them. `can` has the attributes that begin with can_."""
        found = cls(
            layers=whole_number(config, "num_hidden_layers", "n_layers"),
            width=whole_number(config, "hidden_size", "dim"),
            neurons=whole_number(config, "intermediate_size", "hidden_dim"),
            tokens=whole_number(config, "vocab_size"),
            positions=whole_number(config, "max_position_embeddings"),
            vector=vector,
            table=whole_number(config, "embedding_size"),
            distinct_layers=whole_number(config, "num_hidden_groups") * whole_number(config, "inner_group_num"),
            **can,
        )
        return found if all((found.layers, found.width, found.neurons, found.tokens)) else None

    def graph_bytes(
        self,
        layers: int | None = None,
        token_dim: int | None = None,
        tokens: int | None = None,
        neurons: int | None = None,
        weight_format: str = INT8,
    ) -> int:
        """The bytes of the int8 graph of this model, or of a shape cut from it; None keeps what the model has."""
        matrices, others = self._parts(layers, token_dim, tokens, neurons)
        of_matrices = sum(count * _matrix_bytes(rows, columns, weight_format) for rows, columns, count in matrices)
        applied, layers = layers or self.layers, layers or self.distinct_layers or self.layers
        overhead = graph_overhead(self.width, neurons or self.neurons, weight_format, layers, applied)
        return round(of_matrices) + 4 * others + overhead

    def parameters(
        self,
        layers: int | None = None,
        token_dim: int | None = None,
        tokens: int | None = None,
        neurons: int | None = None,
    ) -> int:
        """The number of parameters of this model, or of a shape cut from it."""
        matrices, others = self._parts(layers, token_dim, tokens, neurons)
        return others + sum(rows * columns * count for rows, columns, count in matrices)

    def _parts(
        self, layers: int | None, token_dim: int | None, tokens: int | None, neurons: int | None
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Outputs, inputs and number of the matrices, and the number of all other parameters."""
        neurons, tokens = neurons or self.neurons, tokens or self.tokens
        narrow, layers = token_dim or self.table or self.width, layers or self.distinct_layers or self.layers
        matrices = [(self.width, self.width, 4 * layers), (neurons, self.width, layers), (self.width, neurons, layers)]
        matrices += [(tokens, narrow, 1), (self.positions, narrow, 1)]
        matrices += [(self.width, narrow, 1)] if narrow != self.width else []
        matrices += [] if self.vector == self.width else [(self.vector, self.width, 1)]
        return matrices, layers * (9 * self.width + neurons)

    @property
    def smallest_weight_format(self) -> str:
        """The weight format with the fewest bytes: 4 bits are possible only for rows of whole blocks."""
        return INT8 if self.width % BLOCK else INT4

    def multiplications(self, layers: int | None = None, neurons: int | None = None) -> int:
        """The number of multiplications per token in all layers, except those of attention scores and outputs."""
        return (layers or self.layers) * (4 * self.width**2 + 2 * self.width * (neurons or self.neurons))

    def neurons_left(self, share: float) -> int | None:
        """This share of the neurons, in whole blocks; None if it is all of them."""
        return None if share == 1 else whole_blocks(share * self.neurons)

    def tokens_within(self, most: int, neurons: int | None = None, weight_format: str = INT8) -> int | None:
        """The largest vocabulary with which the int8 graph has at most `most` bytes, in steps of 500 tokens.

        None if the whole vocabulary fits.
        """
        spare = most - self.graph_bytes(neurons=neurons, weight_format=weight_format)
        each = _matrix_bytes(self.tokens, self.table or self.width, weight_format) / self.tokens
        return None if spare >= 0 else int(self.tokens + spare / each) // 500 * 500


def whole_blocks(width: float) -> int:
    """A width rounded to whole blocks, whose weights can be stored in 4 bits; one of less than a block stays."""
    return round(width) if round(width) < BLOCK else round(width / BLOCK) * BLOCK


def counted_bytes(weights: Iterable[Sequence[int]], size: TransformerSize) -> int:
    """The bytes of the int8 graph of a model, counted from the shapes of its weights.

    For architectures whose matrices do not follow from the sizes in a configuration, such as those of gated
    feed-forward networks.
    """
    of_weights = sum(prod(shape) * (1 if len(shape) == 2 else 4) for shape in weights)
    return of_weights + graph_overhead(size.width, size.neurons, INT8, size.layers)


def graph_overhead(width: int, neurons: int, weight_format: str, layers: int, applied: int | None = None) -> int:
    """The bytes of a graph in addition to its parameters.

    These are operators, a scale and a zero point for each output of a matrix, and outlier factors for about half of the
    inputs.

    Args:
        applied: number of applications of layers; by default, the number of layers.
    """
    columns = 5 * (5 * width + neurons) + 2 * (3 * width + neurons)
    return layers * columns + (applied or layers) * OPERATORS[weight_format] + GRAPH


def _matrix_bytes(rows: int, columns: int, weight_format: str) -> float:
    """The bytes of a matrix; it has 8 bits per weight if 4 are not possible."""
    return rows * columns * WEIGHT_BYTES[weight_format if is_packable((rows, columns)) else INT8]
