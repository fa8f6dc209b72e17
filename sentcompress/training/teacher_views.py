"""The inputs of distillation methods: cached vectors, matched layers, and the teacher in the training loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sentcompress.encoding.npy_files import LAYERS, NpyFiles
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.methods.base import Shapes
from sentcompress.models.catalog import find_teacher_of
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import load_encoder
from sentcompress.models.model_files import read_config, transformer_folder, whole_number
from sentcompress.quantities import counted
from sentcompress.store import Artifact
from sentcompress.training.batches import RowField, Rows
from sentcompress.training.data import number_field
from sentcompress.training.residence import Residence
from sentcompress.training.views import DistillationViews, TeacherInLoop, matched_layers, spread_layers

# The needs of methods that an encoder without layers cannot meet.
OF_LAYERS = frozenset({"teacher-layers", "tokens", "states", "last-layers", "last-states"})
# Vectors read at a time.
PIECE = 50_000


@dataclass(frozen=True)
class Supply:
    """Everything that a method needs besides the student.

    Attributes:
        shapes: the sizes to build the method with.
        fields: tensors by row, added to each batch.
        views: computes the views of a batch.
    """

    shapes: Shapes
    fields: Mapping[str, RowField]
    views: DistillationViews


def supply(
    needs: frozenset[str],
    encoder: Encoder,
    vectors: Artifact,
    *,
    domains: Rows | None,
    tensors: Mapping[str, Tensor],
    input_layer: int,
    residence: Residence,
    trust_remote_code: bool,
) -> Supply:
    """Gather what a method needs.

    Args:
        vectors: the artifact of kind `teacher-vectors`.
        domains: [N] the domain of each row of the sentence table; only if the method needs them.
        tensors: tensors for `Shapes`.
        input_layer: the layer for "inputs".
        residence: where vectors are kept, and the device to train on.
        trust_remote_code: whether the user allows the teacher to run its own code.

    Raises:
        MissingArtifactError: if the method needs states of layers and the vectors have none.
        InputError: if teacher and student do not match, or the student has no layers and the method needs some.
    """
    files = NpyFiles(vectors.path)
    fields: dict[str, RowField] = {"teacher": residence.vectors(files, "teacher vectors")}
    widths: dict[str, int] = {"hidden": encoder.hidden_size}
    depth = encoder.depth
    if depth == 0 and needs & OF_LAYERS:
        raise InputError(
            "the method compares states inside student and teacher, and a static student has none",
            "use lrn-kd, or simtde with the option alpha=0",
        )
    chosen: dict[str, Any] = {}
    if domains is not None:
        fields["domains"] = number_field(domains)
        tensors = {**tensors, "prototypes": prototypes(files, domains)}
    if "teacher-layers" in needs:
        count, width = _cached_layers(vectors, depth)
        cached = residence.vectors(NpyFiles(vectors.path, LAYERS), "states of layers")
        fields["teacher_layers"] = lambda rows: cached(rows).view(len(rows), count, width)
        widths |= {"layers": count, "teacher_layer_width": width, "student_layer_width": encoder.pooled_dimension}
        chosen["layers"] = matched_layers(depth, count)
    if needs & {"tokens", "states", "last-layers", "last-states"}:
        teacher = teacher_in_loop(vectors, encoder, trust_remote_code=trust_remote_code).to(residence.device)
        widths["teacher_hidden"] = teacher.encoder.hidden_size
        chosen["teacher"] = teacher
        if "states" in needs:
            spread = spread_layers(depth, teacher.encoder.depth)
            widths["layers"] = len(spread)
            chosen |= {"layers": tuple(range(depth + 1)), "teacher_layers": spread}
        if "last-layers" in needs:
            last = _last_layers(depth, teacher.encoder.depth)
            widths["layers"] = depth
            chosen |= {"layers": tuple(range(1, depth + 1)), "teacher_layers": last}
    check_layer(input_layer, depth)
    shapes = Shapes(encoder.dimension, files.dimension, tensors, **widths)
    return Supply(shapes, fields, DistillationViews(encoder, needs, input_layer, **chosen))


def _last_layers(student: int, teacher: int) -> tuple[int, ...]:
    """The numbers of as many last layers of the teacher as the student has."""
    if student > teacher:
        raise InputError(
            f"the student has {student} layers, its teacher only {teacher}: not every layer has one to match",
            "this method needs a student of at most as many layers, such as `student` teacher:3",
        )
    return tuple(range(teacher - student + 1, teacher + 1))


def check_layer(layer: int, depth: int) -> None:
    """Raise UsageError if a model with `depth` layers has no hidden state `layer` (0 is the embedding layer)."""
    if not -depth - 1 <= layer <= depth:
        raise UsageError(
            f"layer={layer}: the student has {counted(depth, 'layer')}", f"choose 0 to {depth}, or from the end: -1"
        )


def prototypes(vectors: NpyFiles, domains: Rows) -> Tensor:
    """The mean teacher vector of each domain: [n, D_t]."""
    count = int(domains.max(initial=0)) + 1
    sums, sizes = np.zeros((count, vectors.dimension)), np.zeros(count)
    for start in range(0, len(domains), PIECE):
        mine = domains[start : start + PIECE]
        np.add.at(sums, mine, vectors.rows(np.arange(start, start + len(mine))))
        sizes += np.bincount(mine, minlength=count)
    return torch.from_numpy(sums / np.maximum(sizes, 1)[:, None]).float()


def teacher_in_loop(vectors: Artifact, student: Encoder, *, trust_remote_code: bool) -> TeacherInLoop:
    """Load the teacher that made the vectors, for a student with the same tokens.

    Raises:
        InputError: if the student has tokens that the teacher lacks, the teacher has changed, or it wants to run code
            and is not trusted.
    """
    source = find_teacher_of(vectors)
    asked = vectors.parameters
    pooling = str(asked.get("pooling", "auto"))
    teacher = load_encoder(source, pooling=pooling, trust_remote_code=trust_remote_code)
    known, own = teacher.tokenizer.get_vocab(), student.tokenizer.get_vocab()
    unknown = [token for token in own if token not in known]
    if unknown:
        raise InputError(
            f"the student has {counted(len(unknown), 'token')} that its teacher {source.label} lacks, such as "
            f"{unknown[0]!r}",
            "this method compares token by token; use a student cut from the teacher, such as `student` teacher:3",
        )
    ids = torch.zeros(max(own.values()) + 1, dtype=torch.int64)
    for token, number in own.items():
        ids[number] = known[token]
    same = bool((ids == torch.arange(len(ids))).all())
    return TeacherInLoop(teacher, None if same else ids)


def _embedding_layers(vectors: Artifact, depth: int) -> str:
    """The command that caches as many evenly spaced teacher layers as the student can match, including the last."""
    config = read_config(transformer_folder(find_teacher_of(vectors).path))
    group = whole_number(config, "inner_group_num") or 1  # see `TransformerEncoder.depth`
    count = group * whole_number(config, "num_hidden_layers", "n_layers") or depth
    wanted = min(depth, count)
    spread = [str(round((number + 1) * count / wanted)) for number in range(wanted)]
    # Of an option that is given twice, the second value counts.
    return f"{vectors.command_line()} --layers {','.join(spread)} --force"


def _cached_layers(vectors: Artifact, depth: int) -> tuple[int, int]:
    """The number of cached layers, and their width."""
    layers = vectors.facts.get("layers")
    if not layers:
        raise MissingArtifactError(
            f"{vectors.reference} has no states of layers, which this method needs",
            f"the student has {counted(depth, 'layer')}; run: {_embedding_layers(vectors, depth)}",
        )
    if len(layers) > depth:
        raise InputError(
            f"{vectors.reference} has {len(layers)} layers of the teacher, but the student has only {depth}",
            f"run: {_embedding_layers(vectors, depth)}",
        )
    return len(layers), int(vectors.facts["layer_width"])
