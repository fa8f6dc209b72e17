"""The size of an int8 graph before it is exported, computed from a model's configuration.

A weight of a matrix takes one byte, or 0.58 if weights are stored in 4 bits, and every other parameter four. The graphs
of `export` differ by at most 1%, that of general-2m by 2%.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sentcompress.models.model_files import whole_number
from sentcompress.models.weight_formats import BLOCK, INT4, INT8, WEIGHT_BYTES, is_packable

# Bytes of the operators of a graph: each time that a layer is applied, and the rest. Those that unpack weights of 4
# bits are more.
OPERATORS, GRAPH = {INT8: 9_300, INT4: 20_000}, 11_000


@dataclass(frozen=True)
class TransformerSize:
    """The sizes of a transformer, from its configuration, and which of its parts can be made smaller.

    Attributes:
        layers, width, neurons, tokens, positions: of its layers, hidden states, feed-forward networks, vocabulary and
            position table.
        vector: D, the width of its vectors.
        table: width of its token and position tables; 0 for that of the hidden states.
        distinct_layers: number of layers with weights of their own; 0 for all. ALBERT's layers share theirs.
        can_cut: whether layers and neurons can be removed.
        can_factorise: whether its token table can be made narrower.
        can_trim: whether tokens can be removed from its vocabulary.
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

    @classmethod
    def of(cls, config: dict[str, Any], vector: int, **can: bool) -> TransformerSize | None:
        """The sizes in a configuration; None if it does not tell them. `can` has the last three attributes."""
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
        neurons, tokens = neurons or self.neurons, tokens or self.tokens
        applied, narrow = layers or self.layers, token_dim or self.table or self.width
        layers = layers or self.distinct_layers or self.layers
        # Outputs and inputs of each matrix, and how many there are of it.
        matrices = [(self.width, self.width, 4 * layers), (neurons, self.width, layers), (self.width, neurons, layers)]
        matrices += [(tokens, narrow, 1), (self.positions, narrow, 1)]
        matrices += [(self.width, narrow, 1)] if narrow != self.width else []
        matrices += [] if self.vector == self.width else [(self.vector, self.width, 1)]
        of_matrices = sum(count * _matrix_bytes(rows, columns, weight_format) for rows, columns, count in matrices)
        others = layers * (9 * self.width + neurons)
        return round(of_matrices) + 4 * others + graph_overhead(self.width, neurons, weight_format, layers, applied)

    @property
    def smallest_weight_format(self) -> str:
        """The weight format of the fewest bytes: only rows of whole blocks can be stored in 4 bits."""
        return INT8 if self.width % BLOCK else INT4

    def multiplications(self, layers: int | None = None, neurons: int | None = None) -> int:
        """The multiplications of all layers for each token, without those of attention among tokens."""
        return (layers or self.layers) * (4 * self.width**2 + 2 * self.width * (neurons or self.neurons))

    def neurons_left(self, share: float) -> int | None:
        """This share of the neurons; None if it is all of them."""
        return None if share == 1 else round(share * self.neurons)

    def tokens_within(self, most: int, neurons: int | None = None, weight_format: str = INT8) -> int | None:
        """The largest vocabulary with which the int8 graph has at most `most` bytes, in steps of 500 tokens.

        None if the whole vocabulary fits.
        """
        spare = most - self.graph_bytes(neurons=neurons, weight_format=weight_format)
        each = _matrix_bytes(self.tokens, self.table or self.width, weight_format) / self.tokens
        return None if spare >= 0 else int(self.tokens + spare / each) // 500 * 500


def graph_overhead(width: int, neurons: int, weight_format: str, layers: int, applied: int | None = None) -> int:
    """The bytes of a graph besides its parameters.

    Operators, and for each layer a scale and a zero point for each output of a matrix, and the factors of outliers of
    about half of the inputs.

    Args:
        applied: how often layers are applied; as often as there are layers by default.
    """
    columns = 5 * (5 * width + neurons) + 2 * (3 * width + neurons)
    return layers * columns + (applied or layers) * OPERATORS[weight_format] + GRAPH


def _matrix_bytes(rows: int, columns: int, weight_format: str) -> float:
    """The bytes of a matrix; what 4 bits are not possible for has 8."""
    return rows * columns * WEIGHT_BYTES[weight_format if is_packable((rows, columns)) else INT8]
