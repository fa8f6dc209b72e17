"""The shape of a student that is cut from its teacher or another model.

Does not import torch, because the command line needs it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sentcompress.errors import UsageError
from sentcompress.models.model_files import whole_number

TEACHER_LAYERS = re.compile(r"teacher:(.*)")
# The teacher's tokens, each with one vector, and none of its layers.
STATIC_STUDENT = "teacher:static"
# What a student is initialised from: the checkpoint's weights, as published; for narrowed parts, the hidden states
# of the model that is narrowed on sample sentences; or random numbers.
WEIGHTS, SENTENCES, RANDOM = "weights", "sentences", "random"
STARTS = (WEIGHTS, SENTENCES, RANDOM)

_SIZES_IN_WORDS: Mapping[str, str] = {
    "vocabulary": "a vocabulary of {:,} tokens",
    "token_dim": "token embeddings of {} dimensions",
    "feed_forward": "feed-forward layers of {} units",
}


@dataclass(frozen=True)
class Shape:
    """The parts that a student keeps of its teacher, or of the model that it starts from.

    Attributes:
        layers: K, the number of the teacher's last layers to keep; 0 for token vectors alone (a static student), None
            for all layers of another model.
        token_dim: width of a factorised token table; None keeps the table, or for a static student its width.
        vocabulary: number of tokens to keep; None keeps all.
        character_count: with a smaller vocabulary, keep characters that occur at least this often; 0 keeps all.
        feed_forward: neurons to keep in each feed-forward network; None keeps all.
        passes: with a factorised table, how often the layers are applied (weight sharing, as in ALBERT).
        start: WEIGHTS, SENTENCES (a narrow table and narrow networks) or RANDOM (the layers of `teacher:K`, all weights
            of a separate checkpoint).
    """

    layers: int | None = None
    token_dim: int | None = None
    vocabulary: int | None = None
    character_count: int = 0
    feed_forward: int | None = None
    passes: int = 1
    start: str = WEIGHTS

    @property
    def static(self) -> bool:
        """Whether the student is token vectors alone."""
        return self.layers == 0

    @property
    def suffix(self) -> str:
        """The suffix of the artifact's name, such as `-e128-v8000`, without the layers, which the name itself has."""
        letters = {"e": self.token_dim, "v": self.vocabulary, "c": self.character_count or None}
        letters |= {"f": self.feed_forward, "p": None if self.passes == 1 else self.passes}
        sizes = "".join(f"-{letter}{number}" for letter, number in letters.items() if number is not None)
        return sizes if self.start == WEIGHTS else f"{sizes}-{self.start}"

    def as_dict(self) -> dict[str, Any]:
        """Values by name, without `layers`, which the student's name contains."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "layers"}


def told_sizes(values: Mapping[str, Any]) -> list[str]:
    """The sizes of a smaller student, in words; of the values by name, those that are present and not None."""
    return [words.format(values[name]) for name, words in _SIZES_IN_WORDS.items() if values.get(name) is not None]


@dataclass(frozen=True)
class Size:
    """The size of a model according to its configuration; 0 for a value that the configuration lacks.

    Attributes:
        parameters: weights of the layers and of the token table, without positions, norms and biases (1% of BERT-base).
        width: width of the hidden states.
    """

    parameters: int = 0
    width: int = 0


def size_of(config: dict[str, Any], shape: Shape) -> Size:
    """The size of the model with this configuration, or of the student of this shape that is cut from it."""
    width = whole_number(config, "hidden_size", "dim", "d_model")
    # ALBERT's layers share their weights.
    own = whole_number(config, "num_hidden_groups") * whole_number(config, "inner_group_num")
    layers = shape.layers or own or whole_number(config, "num_hidden_layers", "n_layers")
    neurons = shape.feed_forward or whole_number(config, "intermediate_size", "hidden_dim")
    tokens = shape.vocabulary or whole_number(config, "vocab_size")
    token_dim = shape.token_dim or whole_number(config, "embedding_size") or width
    if not all((width, layers, neurons, tokens)):
        return Size(0, width)
    projection = token_dim * width if token_dim != width else 0
    if shape.static:
        return Size(tokens * token_dim + projection, width)
    return Size(layers * (4 * width**2 + 2 * width * neurons) + tokens * token_dim + projection, width)


def layer_count(name: str) -> int | None:
    """K of `teacher:K`, 0 for `teacher:static`; None for any other name.

    Raises:
        UsageError: if K is not a whole number above zero.
    """
    if name == STATIC_STUDENT:
        return 0
    match = TEACHER_LAYERS.fullmatch(name)
    if match is None:
        return None
    if not match[1].isdecimal() or int(match[1]) == 0:
        raise UsageError(
            f"{name!r}: the number of layers must be 1 or more",
            f"for example `student` teacher:3; {STATIC_STUDENT} has none",
        )
    return int(match[1])
