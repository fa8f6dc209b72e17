"""The students that a budget of bytes allows: published ones, whole or made smaller, and shapes cut from the teacher.

The size of a shape is computed, that of its int8 graph: one byte for each weight of a matrix, four for every other
parameter. The graphs of `export` differ by at most 1%, that of general-2m by 2%.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sentcompress.models.model_files import read_config, whole_number
from sentcompress.models.shape import told_sizes
from sentcompress.published import FOLDER, PUBLISHED
from sentcompress.quantities import told_bytes

# Bytes of a graph besides its weights: its operators, for each time that a layer is applied, and the rest.
GRAPH_LAYER, GRAPH = 30_000, 5_000
# Widths of a factorised token table, neurons of feed-forward networks and sizes of the vocabulary to try, as shares of
# the teacher's.
TOKEN_DIMS = (None, 1 / 3, 1 / 6)
VOCABULARIES = (1.0, 0.75, 0.5, 0.25)
NEURONS = (1.0, 0.5, 0.25)
# What is left of a published student's neurons, and the fewest tokens that are worth fewer neurons: rows for 10,000 of
# the documents' most frequent tokens and 192 neurons, or for 9,000 and 256, or 7,000 and 384 all fit into 3 MB; search
# fidelity on SciFact after 800 steps is 69.4, 68.8 and 67.7.
NEURONS_LEFT = (1.0, 2 / 3, 1 / 2, 1 / 3, 1 / 4, 1 / 6)
WORTH_NEURONS = 10_000
# The same of a teacher with all layers that has no published students. With half of its neurons and 8,000 tokens,
# 10.6 MB, all-MiniLM-L6-v2 has a search fidelity of 78.4 on SciFact after 400 steps, and general-9m 76.8; but it has
# 66.7 on STS-B, where general-9m has 81.7, and computes a third more.
NEURONS_OF_ALL_LAYERS = (1.0, 2 / 3, 1 / 2)
# Single characters that occur less often in the documents make room for more words.
CHARACTER_COUNT = 2
# The fewest of the documents' most frequent tokens that a published student with all neurons, or the teacher with all
# layers, is cut to. SciFact and msmarco_5k consist of these to 98% to 99%; the teacher with only these has a search
# fidelity of 89 on SciFact without any training, and of 94 with 10,000.
LEAST_VOCABULARY = 8000
# A budget is used to at least this share: a smaller shape would waste it.
LEAST_USE = 0.6


@dataclass(frozen=True)
class Candidate:
    """A model that may fit.

    Attributes:
        student: what `distill --student` takes, or the teacher's own name.
        options: the options of `distill` for a shape cut from the teacher or a published student.
        bytes: of its int8 graph.
        untrained: whether it can be used without training: the teacher itself.
        published: whether it comes with the package, or is cut from a student that does.
        whole: whether it has all layers of the teacher, and lacks rare tokens and perhaps some neurons.
        multiplications: for each token, see `TeacherSize.multiplications`.
    """

    student: str
    bytes: int
    options: Mapping[str, Any] = field(default_factory=dict)
    untrained: bool = False
    published: bool = False
    whole: bool = False
    multiplications: int = 0

    @property
    def is_good(self) -> bool:
        """Whether it is close to the teacher before any training."""
        return self.published or self.whole

    @property
    def described(self) -> str:
        """In words: 4 of the teacher's layers, 15,500 tokens."""
        parts = told_sizes({name.replace("-", "_"): value for name, value in self.options.items()})
        if self.published or self.untrained:
            own = f"{self.student}, a {'published student' if self.published else 'teacher'}"
            return f"{own}, cut to {' and '.join(parts)}" if parts else own
        if self.whole:
            return ", ".join(["all of the teacher's layers", *parts])
        return ", ".join([f"{self.student.removeprefix('teacher:')} of the teacher's layers", *parts])


@dataclass(frozen=True)
class TeacherSize:
    """The sizes of a teacher, from its configuration, and which of its parts can be made smaller.

    Attributes:
        layers, width, neurons, tokens, positions: of its layers, hidden states, feed-forward networks, vocabulary and
            position table.
        vector: D, the width of its vectors.
        table: width of its token and position tables; 0 for that of the hidden states.
        stored: number of layers with weights of their own; 0 for all. ALBERT's layers share theirs.
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
    stored: int = 0
    can_cut: bool = True
    can_factorise: bool = True
    can_trim: bool = True

    @classmethod
    def of(cls, config: dict[str, Any], vector: int, **can: bool) -> TeacherSize | None:
        """The sizes in a configuration; None if it does not tell them. `can` has the last three attributes."""
        found = cls(
            layers=whole_number(config, "num_hidden_layers", "n_layers"),
            width=whole_number(config, "hidden_size", "dim"),
            neurons=whole_number(config, "intermediate_size", "hidden_dim"),
            tokens=whole_number(config, "vocab_size"),
            positions=whole_number(config, "max_position_embeddings"),
            vector=vector,
            table=whole_number(config, "embedding_size"),
            stored=whole_number(config, "num_hidden_groups") * whole_number(config, "inner_group_num"),
            **can,
        )
        return found if all((found.layers, found.width, found.neurons, found.tokens)) else None

    def graph_bytes(
        self,
        layers: int | None = None,
        token_dim: int | None = None,
        tokens: int | None = None,
        neurons: int | None = None,
    ) -> int:
        """The size of the int8 graph of a shape cut from this teacher; None keeps what the teacher has."""
        neurons, tokens = neurons or self.neurons, tokens or self.tokens
        applied, narrow = layers or self.layers, token_dim or self.table or self.width
        layers = layers or self.stored or self.layers
        layer = 4 * self.width**2 + 2 * self.width * neurons + 4 * (9 * self.width + neurons)
        table = tokens * narrow + (narrow * self.width if narrow != self.width else 0)
        dense = 0 if self.vector == self.width else self.width * self.vector
        return table + self.positions * narrow + layers * layer + dense + applied * GRAPH_LAYER + GRAPH

    def multiplications(self, layers: int | None = None, neurons: int | None = None) -> int:
        """The multiplications of all layers for each token, without those of attention among tokens."""
        return (layers or self.layers) * (4 * self.width**2 + 2 * self.width * (neurons or self.neurons))

    def tokens_within(self, most: int, neurons: int | None = None) -> int:
        """The largest vocabulary with which the int8 graph has at most `most` bytes, in steps of 500 tokens."""
        spare = most - self.graph_bytes(neurons=neurons)
        return min(self.tokens, self.tokens + spare // (self.table or self.width)) // 500 * 500


def own_shape(teacher: TeacherSize, name: str) -> Candidate:
    """The teacher itself, as an int8 graph."""
    return Candidate(name, teacher.graph_bytes(), untrained=True)


def fitting(teacher: TeacherSize, most: int, *, with_published: bool, count: int) -> list[Candidate]:
    """Up to `count` shapes of at most `most` bytes, the most promising first.

    The teacher with all layers, without its rare tokens, comes first: untrained, it is close to the teacher. Then
    published students, which have been trained on many texts, as they are or made smaller. Of the others, one for each
    number of layers, the one that uses most of the budget; those that compute most come first.

    Args:
        with_published: whether the teacher is theirs.
    """
    ready = _of_published(most) if with_published else []
    best: dict[int, Candidate] = {}
    for layers, shape in _cuts(teacher):
        if shape.bytes <= most and (layers not in best or shape.bytes > best[layers].bytes):
            best[layers] = shape
    # Of equal size, a shape that computes more has its weights in layers rather than in rare tokens.
    cut = sorted(best.values(), key=lambda shape: -shape.multiplications)
    cut = [shape for shape in cut if shape.bytes >= LEAST_USE * most] or cut[:1]
    trimmed = _trimmed(teacher, most, NEURONS_OF_ALL_LAYERS[:1] if with_published else NEURONS_OF_ALL_LAYERS)
    of_all_layers = {shape.student for shape in trimmed}
    return [*trimmed, *ready, *(shape for shape in cut if shape.student not in of_all_layers)][:count]


def _of_published(most: int) -> list[Candidate]:
    """Published students that fit: larger ones that are cut, then the largest as it is."""
    starters = sorted((one.graph_bytes, name) for name, one in PUBLISHED.items() if one.starter)
    whole = [
        Candidate(name, size, published=True, multiplications=_size_of_published(name).multiplications())
        for size, name in starters
        if size <= most
    ]
    cut = list(_cut_of_published(most, [name for _, name in starters[len(whole) :]]))
    # A larger student that only lacks rare tokens is better than a smaller one. With fewer neurons too, it starts where
    # that starts, and learns faster.
    only_trimmed = any("feed-forward" not in shape.options for shape in cut)
    return [*cut, *([] if only_trimmed else whole[-1:])]


def _cut_of_published(most: int, names: Iterable[str]) -> Iterator[Candidate]:
    """Published students with as many of their neurons as leave room for enough tokens."""
    for name in names:
        size = _size_of_published(name)
        for share in NEURONS_LEFT[:1] if size.stored else NEURONS_LEFT:
            neurons = None if share == 1 else round(share * size.neurons)
            tokens = size.tokens_within(most, neurons)
            if tokens >= (LEAST_VOCABULARY if neurons is None else WORTH_NEURONS):
                yield replace(_cut(size, name, tokens=tokens, neurons=neurons), published=True)
                break


def _size_of_published(name: str) -> TeacherSize:
    config = read_config(FOLDER / name)
    size = TeacherSize.of(config, int(config["hidden_size"]))
    assert size is not None
    return size


def smallest(teacher: TeacherSize) -> Candidate | None:
    """The smallest of all shapes that can be cut from the teacher, for the hint of an error; None if none can."""
    return min((shape for _, shape in _cuts(teacher)), key=lambda shape: shape.bytes, default=None)


def _cuts(teacher: TeacherSize) -> Iterator[tuple[int, Candidate]]:
    """Shapes cut from the teacher, each with its number of layers."""
    for layers in range(1, teacher.layers + 1) if teacher.can_cut else ():
        for narrow in TOKEN_DIMS if teacher.can_factorise else TOKEN_DIMS[:1]:
            token_dim = round(narrow * teacher.width) if narrow else None
            for kept in VOCABULARIES if teacher.can_trim else VOCABULARIES[:1]:
                tokens = None if kept == 1 else _rounded(kept * teacher.tokens)
                if tokens and tokens >= teacher.tokens:
                    continue  # a vocabulary so small that rounding made it larger
                for share in NEURONS:
                    neurons = None if share == 1 else round(share * teacher.neurons)
                    sizes = {"layers": layers, "token_dim": token_dim, "tokens": tokens, "neurons": neurons}
                    yield layers, _cut(teacher, f"teacher:{layers}", **sizes)


def _trimmed(teacher: TeacherSize, most: int, shares: Sequence[float]) -> list[Candidate]:
    """The teacher with all layers and a smaller vocabulary; empty if no share of its neurons leaves enough room."""
    if not (teacher.can_cut and teacher.can_trim):
        return []
    for share in shares:
        neurons = None if share == 1 else round(share * teacher.neurons)
        tokens = teacher.tokens_within(most, neurons)
        if tokens >= LEAST_VOCABULARY:
            return [replace(_cut(teacher, f"teacher:{teacher.layers}", tokens=tokens, neurons=neurons), whole=True)]
    return []


def _cut(
    model: TeacherSize,
    student: str,
    *,
    layers: int | None = None,
    token_dim: int | None = None,
    tokens: int | None = None,
    neurons: int | None = None,
) -> Candidate:
    options = {"token-dim": token_dim, "vocabulary": tokens, "feed-forward": neurons}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if tokens:
        given["character-count"] = CHARACTER_COUNT
    if token_dim or neurons:
        given["start"] = "sentences"
    size, work = model.graph_bytes(layers, token_dim, tokens, neurons), model.multiplications(layers, neurons)
    return Candidate(student, size, given, multiplications=work)


def _rounded(tokens: float) -> int:
    return max(500, round(tokens / 500) * 500)


def told_shapes(shapes: Sequence[Candidate]) -> str:
    """The shapes in words, for messages."""
    return "; ".join(f"{shape.described} ({told_bytes(shape.bytes)})" for shape in shapes)
