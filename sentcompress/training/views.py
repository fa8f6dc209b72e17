"""Computes the views of a batch, the tensors that a method's objective takes (listed in `methods.base.Method`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sentcompress.models.encoder import Encoder
from sentcompress.models.pooling import pool
from sentcompress.training.batches import Batch

Views = Callable[[Batch], dict[str, Tensor]]
# The texts of a triplet batch are encoded in this many parts of similar length, to reduce padding.
PARTS = 4
# Views that do not have one row for each row of a batch: one for each token, or for each hard negative.
OF_TOKENS = frozenset(
    {"student_tokens", "student_states", "student_last", "teacher_tokens", "teacher_states", "teacher_last"}
)
OF_NEGATIVES = frozenset({"negatives", "negative_inputs"})
# Views of the sentences for the option `keep`, which come with a batch of triplets.
OF_KEPT = frozenset({"student", "teacher"})


@dataclass(frozen=True)
class TeacherInLoop:
    """The frozen teacher that runs during training, as a whole or only its embedding layer.

    Attributes:
        encoder: the teacher, in eval mode.
        token_ids: [V] the teacher's token id for each of the student's; None if they are equal.
    """

    encoder: Encoder
    token_ids: Tensor | None = None

    def to(self, device: torch.device) -> TeacherInLoop:
        ids = None if self.token_ids is None else self.token_ids.to(device)
        return TeacherInLoop(self.encoder.to(device).eval().requires_grad_(False), ids)

    def ids(self, input_ids: Tensor) -> Tensor:
        return input_ids if self.token_ids is None else self.token_ids[input_ids]

    @torch.no_grad()
    def token_embeddings(self, batch: Batch) -> Tensor:
        """Outputs of the embedding layer at the M real tokens: [M, H_t]."""
        return _real(self.encoder.token_embeddings(self.ids(batch.input_ids)), batch)

    @torch.no_grad()
    def states(self, batch: Batch, layers: Sequence[int]) -> Tensor:
        """Hidden states of some layers at the M real tokens: [M, L, H_t]."""
        ids, mask, padded = self.ids(batch.input_ids), batch.attention_mask, batch.layout.padded
        _, states = self.encoder.embed_with_states(ids, mask, padded=padded)
        return _stacked(states, layers, batch)


@dataclass(frozen=True)
class DistillationViews:
    """Views of a batch of sentences.

    Attributes:
        needs: see `Method`.
        input_layer: the layer for "inputs".
        layers: the student's matched layers (0 is the embedding layer), for "teacher-layers" and the next.
        teacher_layers: the teacher's matched layers, for "states" and "last-layers".
        teacher: the teacher, for "tokens", "states", "last-layers" and "last-states".
    """

    encoder: Encoder
    needs: frozenset[str]
    input_layer: int = 0
    layers: tuple[int, ...] = ()
    teacher_layers: tuple[int, ...] = ()
    teacher: TeacherInLoop | None = None

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        return {name: batch.own(view) for name, view in self._views(batch).items()}

    def _views(self, batch: Batch) -> dict[str, Tensor]:
        ids, mask, padded = batch.input_ids, batch.attention_mask, batch.layout.padded
        views = dict(batch.fields)
        if not self.needs & {"inputs", "tokens", "teacher-layers", "states", "last-layers", "last-states"}:
            return {"student": self.encoder.embed(ids, mask, padded=padded), **views}
        student, states = self.encoder.embed_with_states(ids, mask, padded=padded)
        views = {"student": student, **views}
        if "inputs" in self.needs:
            views["inputs"] = pool(states[self.input_layer], mask, "mean")
        if "teacher-layers" in self.needs:
            views["student_layers"] = torch.stack([self.encoder.pooled(states[k], mask) for k in self.layers], dim=1)
        if "tokens" in self.needs and self.teacher:
            views["student_tokens"] = _real(states[0], batch)
            views["teacher_tokens"] = self.teacher.token_embeddings(batch)
        if self.needs & {"states", "last-layers"} and self.teacher:
            views["student_states"] = _stacked(states, self.layers, batch)
            views["teacher_states"] = self.teacher.states(batch, self.teacher_layers)
        if "last-states" in self.needs and self.teacher:
            views["student_last"] = _real(states[-1], batch)
            views["teacher_last"] = self.teacher.states(batch, (-1,)).squeeze(1)
        return views


@dataclass(frozen=True)
class TripletViews:
    """Views of a batch of triplets, and of its sentences for the option `keep`."""

    encoder: Encoder
    needs: frozenset[str]
    input_layer: int = 0

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        vectors, inputs = self._encode(batch)
        views = dict(zip(("anchor", "positive", "negatives"), _thirds(vectors, len(batch)), strict=True))
        if inputs is not None:
            names = ("inputs", "positive_inputs", "negative_inputs")
            views |= dict(zip(names, _thirds(inputs, len(batch)), strict=True))
        views = {name: batch.own(view) for name, view in views.items()}
        if (kept := batch.kept) is not None:
            embedded = self.encoder.embed(kept.input_ids, kept.attention_mask, padded=kept.layout.padded)
            views["student"] = kept.own(embedded)
            views["teacher"] = kept.own(kept.targets)
        return views

    def _encode(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """Vectors [S, D], and the mean states of a layer [S, H] if needed."""
        order, lengths = batch.layout.by_length, np.sort(batch.layout.lengths)
        vectors, inputs, start = [], [], 0
        for part in order.chunk(min(PARTS, len(order))):
            shortest, longest = int(lengths[start]), int(lengths[start + len(part) - 1])
            ids, mask = batch.input_ids[part, :longest], batch.attention_mask[part, :longest]
            found = self._encode_part(ids, mask, padded=shortest < longest)
            start += len(part)
            vectors.append(found[0])
            inputs.append(found[1])
        back = order.argsort()
        joined = torch.cat([part for part in inputs if part is not None])[back] if "inputs" in self.needs else None
        return torch.cat(vectors)[back], joined

    def _encode_part(self, ids: Tensor, mask: Tensor, *, padded: bool) -> tuple[Tensor, Tensor | None]:
        if "inputs" not in self.needs:
            return self.encoder.embed(ids, mask, padded=padded), None
        vectors, states = self.encoder.embed_with_states(ids, mask, padded=padded)
        return vectors, pool(states[self.input_layer], mask, "mean")


def matched_layers(student: int, teacher: int) -> tuple[int, ...]:
    """The student's layers to compare with the chosen layers of the teacher: evenly spaced, including the last.

    Args:
        student: K, the number of the student's layers.
        teacher: the number of chosen teacher layers, at most K.
    """
    return tuple(round((number + 1) * student / teacher) for number in range(teacher))


def spread_layers(student: int, teacher: int) -> tuple[int, ...]:
    """For each of a student's K + 1 hidden states, the teacher's at the same relative depth."""
    return tuple(round(number * teacher / student) for number in range(student + 1))


def _thirds(rows: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    return rows[:count], rows[count : 2 * count], rows[2 * count :]


def _real(states: Tensor, batch: Batch) -> Tensor:
    """Remove the padding: [B, T, H] -> [M, H]."""
    # Not states[mask]: on a GPU the host would wait to learn how many rows there are.
    return states.flatten(0, 1).index_select(0, batch.layout.real)


def _stacked(states: Sequence[Tensor], layers: Sequence[int], batch: Batch) -> Tensor:
    return torch.stack([_real(states[layer], batch) for layer in layers], dim=1)


def lengths_by_rank(batch: Batch, names: Iterable[str]) -> dict[str, list[int]]:
    """The rows that each view has on every rank; no rank has to ask another."""
    found = {}
    for name in names:
        if name in OF_KEPT and batch.kept is not None:
            found[name] = [counts.rows for counts in batch.kept.by_rank]
        elif name in OF_TOKENS:
            found[name] = [counts.tokens for counts in batch.by_rank]
        else:
            each = len(batch.input_ids) // batch.rows - 2 if name in OF_NEGATIVES else 1
            found[name] = [each * counts.rows for counts in batch.by_rank]
    return found


def concatenated(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Concatenate the views of several batches."""
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
