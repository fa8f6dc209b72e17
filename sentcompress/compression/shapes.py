"""The students that fit a budget of bytes: published ones, whole or made smaller, and shapes cut from the teacher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from sentcompress.compression.graph_size import TransformerSize, whole_blocks
from sentcompress.models.model_files import read_config
from sentcompress.models.shape import told_sizes
from sentcompress.models.weight_formats import INT4, INT8, LARGEST_GRAPH
from sentcompress.published import FOLDER, PUBLISHED
from sentcompress.quantities import told_bytes

# Widths of the token table, sizes of the vocabulary and numbers of neurons to try, as shares of the teacher's. The
# smallest vocabulary is halved as long as LEAST_VOCABULARY tokens are left: those of multilingual teachers are large.
TOKEN_DIMS = (None, 1 / 3, 1 / 6)
VOCABULARIES = (1.0, 0.75, 0.5, 0.25)
NEURONS = (1.0, 0.5, 0.25)
# Shares of a published student's neurons to try, and the least number of tokens that it keeps with fewer neurons. In 3
# MB, `general-9m` has 8,500 tokens with 192 of its 640 neurons: search fidelity on law after 434 steps is 73.3, with
# 10,500 and 96 it is 71.4, with 7,000 and 288 it is 73.0. `general-5m` in int8, on SciFact after 800 steps: 69.4 with
# 10,000 tokens and 192 of its 768 neurons, 68.8 with 9,000 and 256, 67.7 with 7,000 and 384.
NEURONS_LEFT = (1.0, 2 / 3, 1 / 2, 0.3)
LEAST_VOCABULARY_IF_PRUNED = 8500
# The same for a teacher with all layers that has no published students. With half of its neurons and 8,000 tokens
# (10.6 MB), all-MiniLM-L6-v2 has a search fidelity of 78.4 on SciFact after 400 steps, and general-9m 76.8; but its
# STS-B score is 66.7, that of general-9m 81.7, and it computes a third more.
NEURONS_OF_ALL_LAYERS = (1.0, 2 / 3, 1 / 2)
# Single characters that occur less often in the documents are dropped to make room for more words.
CHARACTER_COUNT = 2
# Least number of tokens that a published student with all neurons, or the teacher with all layers, keeps. The most
# frequent 8,000 cover 98% to 99% of SciFact and msmarco_5k; with these, the untrained teacher has a search fidelity of
# 89 on SciFact, and of 94 with 10,000.
LEAST_VOCABULARY = 8000
# With fewer tokens, the teacher in int8 is worse than with 4 bits per weight and more tokens: untrained, its search
# fidelity on SciFact is 91.0 with 8,000 tokens, 96.3 with 12,000, and 93.1 with all tokens and layers in 4 bits.
ENOUGH_FOR_INT8 = 12_000
# Least share of the budget that a shape must use; a smaller one would waste it.
LEAST_USE = 0.6


@dataclass(frozen=True)
class Candidate:
    """A model that may fit.

    Attributes:
        student: the value of `distill --student`, or the teacher's own name.
        options: the options of `distill` for a shape cut from the teacher or from a published student.
        bytes: size of its int8 graph.
        untrained: whether it is the teacher itself, which needs no training.
        published: whether it is a published student, or is cut from one.
        whole: whether it has all layers of the teacher, without rare tokens and perhaps with fewer neurons.
        multiplications: number of multiplications per token, see `TransformerSize.multiplications`.
        parameters: number of parameters.
        weight_format: weight format of its graph, int8 or int4.
    """

    student: str
    bytes: int
    options: Mapping[str, Any] = field(default_factory=dict)
    untrained: bool = False
    published: bool = False
    whole: bool = False
    multiplications: int = 0
    parameters: int = 0
    weight_format: str = INT8

    @property
    def is_exportable(self) -> bool:
        """Whether its float32 weights fit into one ONNX file."""
        return 4 * self.parameters <= LARGEST_GRAPH

    @property
    def is_good(self) -> bool:
        """Whether it is close to the teacher before any training."""
        return self.published or self.whole

    @property
    def has_whole_layers(self) -> bool:
        """Whether it has all layers of the teacher, with all of their neurons: it only lacks rare tokens."""
        return self.whole and "feed-forward" not in self.options

    def is_averaged(self, compared: bool) -> bool:
        """Whether its trained weights are averaged with the weights before the last training.

        Rounded weights are not averaged, because the average would not be rounded. The initial weights of a new or cut
        shape are not worth averaging, unless it was trained before the last training.

        Args:
            compared: whether candidates are trained and compared before the last training.
        """
        return self.weight_format == INT8 and (compared or (self.published and not self.options))

    @property
    def described(self) -> str:
        """A description, such as "4 of the teacher's layers, a vocabulary of 15,500 tokens"."""
        parts = told_sizes({name.replace("-", "_"): value for name, value in self.options.items()})
        bits = ["weights of 4 bits"] if self.weight_format == INT4 else []
        if self.published or self.untrained:
            own = f"{self.student}, a {'published student' if self.published else 'teacher'}"
            cut = [f"cut to {' and '.join(parts)}"] if parts else []
            return ", ".join([own, *cut, *bits])
        if self.whole:
            return ", ".join(["all of the teacher's layers", *parts, *bits])
        return ", ".join([f"{self.student.removeprefix('teacher:')} of the teacher's layers", *parts, *bits])


def own_shape(teacher: TransformerSize, name: str) -> Candidate:
    """The teacher itself, as an int8 graph."""
    return Candidate(name, teacher.own_bytes, untrained=True, parameters=teacher.parameters())


def fitting(
    teacher: TransformerSize, most: int, *, with_published: bool, count: int, fast: bool = False
) -> list[Candidate]:
    """Up to `count` shapes of at most `most` bytes, the most promising first.

    The teacher with all layers comes first, with 4-bit weights or without its rare tokens: even untrained, it is close
    to the teacher. Published students, whole or cut, come next, because they were trained on many texts. Then
    there is one shape for each number of layers, the one that uses most of the budget, in the order of computation,
    largest first.

    Args:
        with_published: whether the published students are students of this teacher.
        fast: only shapes that compute at most half as much as the teacher.
    """
    ready = _of_published(most) if with_published else []
    best: dict[int, Candidate] = {}
    weight_format = ready[0].weight_format if ready else teacher.smallest_weight_format
    for layers, shape in _cuts(teacher, weight_format, fast=fast):
        if shape.bytes <= most and (layers not in best or shape.bytes > best[layers].bytes):
            best[layers] = shape
    # Of two shapes of equal size, the one that computes more has its weights in layers rather than in rare tokens.
    cut = sorted(best.values(), key=lambda shape: -shape.multiplications)
    cut = [shape for shape in cut if shape.bytes >= LEAST_USE * most] or cut[:1]
    shares = NEURONS_OF_ALL_LAYERS[:1] if with_published else NEURONS_OF_ALL_LAYERS
    whole = [] if fast else _with_all_layers(teacher, most, shares)
    of_all_layers = {shape.student for shape in whole}
    found = [*whole, *ready, *(shape for shape in cut if shape.student not in of_all_layers)]
    # All candidates have the same weight format, because they are compared with rounded weights.
    return [shape for shape in found if shape.weight_format == found[0].weight_format][:count]


def _of_published(most: int) -> list[Candidate]:
    """Published students that fit: the largest one whole if it fits, otherwise cut ones."""
    found: list[Candidate] = []
    for name in sorted(PUBLISHED, key=lambda name: -PUBLISHED[name].graph_bytes):
        if not PUBLISHED[name].starter:
            continue
        size = _size_of_published(name)
        if not found and PUBLISHED[name].graph_bytes <= most:
            return [replace(_cut(size, name), bytes=PUBLISHED[name].graph_bytes, published=True)]
        if shape := _cut_of_published(size, name, most):
            found.append(shape)
            # A larger student that only lacks rare tokens is better than a smaller one. If it also lacks neurons, it
            # starts as low as the smaller one, but learns faster, so both are candidates.
            if "feed-forward" not in shape.options:
                break
    return found


def _cut_of_published(size: TransformerSize, name: str, most: int) -> Candidate | None:
    """A published student in 4 bits, whole or with the most neurons that leave room for enough tokens."""
    for share in NEURONS_LEFT[:1] if size.distinct_layers else NEURONS_LEFT:
        neurons = size.neurons_left(share)
        tokens = size.tokens_within(most, neurons, INT4)
        if tokens is None or tokens >= (LEAST_VOCABULARY if neurons is None else LEAST_VOCABULARY_IF_PRUNED):
            return replace(_cut(size, name, tokens=tokens, neurons=neurons, weight_format=INT4), published=True)
    return None


def _size_of_published(name: str) -> TransformerSize:
    config = read_config(FOLDER / name)
    size = TransformerSize.of(config, int(config["hidden_size"]))
    assert size is not None
    return size


def smallest(teacher: TransformerSize, *, fast: bool = False) -> Candidate | None:
    """The smallest of all shapes that can be cut from the teacher, for the hint of an error; None if none can.

    Args:
        fast: see `fitting`.
    """
    return min(
        (shape for _, shape in _cuts(teacher, teacher.smallest_weight_format, fast=fast)),
        key=lambda shape: shape.bytes,
        default=None,
    )


def _cuts(teacher: TransformerSize, weight_format: str, *, fast: bool) -> Iterator[tuple[int, Candidate]]:
    """Shapes cut from the teacher that can be exported, each with its number of layers.

    Args:
        fast: see `fitting`.
    """
    narrower = [None if share is None else whole_blocks(share * teacher.width) for share in TOKEN_DIMS]
    smaller = [_rounded(share * teacher.tokens) for share in VOCABULARIES if share < 1]
    while smaller[-1] >= 2 * LEAST_VOCABULARY:
        smaller.append(_rounded(smaller[-1] / 2))
    # Rounding can enlarge a small vocabulary.
    vocabularies = [None, *(tokens for tokens in smaller if tokens < teacher.tokens)]
    for layers, token_dim, tokens, share in product(
        range(1, teacher.layers + 1) if teacher.can_cut else (),
        narrower if teacher.can_factorise else (None,),
        vocabularies if teacher.can_trim else (None,),
        NEURONS,
    ):
        shape = _cut(
            teacher,
            f"teacher:{layers}",
            layers=layers,
            token_dim=token_dim,
            tokens=tokens,
            neurons=teacher.neurons_left(share),
            weight_format=weight_format,
        )
        if shape.is_exportable and not (fast and 2 * shape.multiplications > teacher.multiplications()):
            yield layers, shape


def _with_all_layers(teacher: TransformerSize, most: int, shares: Sequence[float]) -> list[Candidate]:
    """The teacher with all layers, in int8 with many tokens or in 4 bits; empty if it does not fit.

    Args:
        shares: shares of its neurons to try in 4 bits.
    """
    tried = [
        (INT8, 1.0, ENOUGH_FOR_INT8),
        *((teacher.smallest_weight_format, share, LEAST_VOCABULARY) for share in shares),
    ]
    for weight_format, share, least in tried if teacher.can_cut else []:
        neurons = teacher.neurons_left(share)
        tokens = teacher.tokens_within(most, neurons, weight_format)
        if tokens is None or (teacher.can_trim and tokens >= least):
            shape = _cut(
                teacher, f"teacher:{teacher.layers}", tokens=tokens, neurons=neurons, weight_format=weight_format
            )
            return [replace(shape, whole=True)] if shape.is_exportable else []
    return []


def _cut(
    model: TransformerSize,
    student: str,
    *,
    layers: int | None = None,
    token_dim: int | None = None,
    tokens: int | None = None,
    neurons: int | None = None,
    weight_format: str = INT8,
) -> Candidate:
    options = {"token-dim": token_dim, "vocabulary": tokens, "feed-forward": neurons}
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if tokens:
        given["character-count"] = CHARACTER_COUNT
    if token_dim or neurons:
        given["start"] = "sentences"
    size = model.graph_bytes(layers, token_dim, tokens, neurons, weight_format)
    return Candidate(
        student,
        size,
        given,
        multiplications=model.multiplications(layers, neurons),
        parameters=model.parameters(layers, token_dim, tokens, neurons),
        weight_format=weight_format,
    )


def _rounded(tokens: float) -> int:
    return max(500, round(tokens / 500) * 500)


def told_shapes(shapes: Sequence[Candidate]) -> str:
    """The shapes in words, for messages."""
    return "; ".join(f"{shape.described} ({told_bytes(shape.bytes)})" for shape in shapes)
