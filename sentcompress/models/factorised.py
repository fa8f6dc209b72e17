"""Students with a factorised token table and the teacher's last layers, as ELECTRA checkpoints.

SimTDE's student (Xie et al. 2023) has token embeddings of a small width e, a linear map to the teacher's width H, and
the teacher's last K layers. This is ELECTRA's architecture, which every tool supports.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sentcompress.errors import InputError
from sentcompress.models.families import (
    COMMON_SETTINGS,
    FACTORISABLE,
    find_family,
    first_position,
    table_projection,
)
from sentcompress.models.token_states import TokenStates

# Rows of the table on which the initial scale is measured.
SAMPLE = 4096
# Directions of the narrow space that hold no state; see `_meet`.
SPARE = 2
# Added to every token count, for tokens that do not occur.
COUNT_FLOOR = 0.3
# States longer than this quantile are shortened.
LONGEST = 0.999


@dataclass(frozen=True)
class _Embeddings:
    """A teacher's embedding layer as plain tensors.

    Attributes:
        words, positions, types: [V, d], [P, d], [S, d]; positions count from the first token.
        weight, bias: LayerNorm's, [d].
        project, project_bias: to the hidden width, [H, d] and [H]; the identity if the checkpoint has none.
        own_project: whether the checkpoint has that layer.
    """

    words: Tensor
    positions: Tensor
    types: Tensor
    weight: Tensor
    bias: Tensor
    project: Tensor
    project_bias: Tensor
    own_project: bool


def factorised(transformer: Any, token_dim: int, label: str, states: TokenStates | None = None) -> nn.Module:
    """An ElectraModel with a token table of width e and the teacher's layers.

    The table is the truncated SVD of the teacher's centred table (LayerNorm centres it anyway), rotated so that the
    mean over its columns, which the narrow LayerNorm removes, is the least important direction. The projection maps
    back and includes the teacher's LayerNorm weights. If e equals the teacher's own width, nothing is lost.

    With `states`, the table holds these instead: the mean output of the omitted layers for each token.

    Args:
        transformer: BERT, RoBERTa, XLM-R or ELECTRA; not modified.
        token_dim: e.
        label: the teacher's name, for errors.
        states: the teacher's states at the input of the first layer.

    Raises:
        InputError: for another architecture, a width above the teacher's, or one too narrow for `states`.
    """
    check_factorisable(transformer.config, label)
    config = transformer.config
    found = _embeddings(transformer)
    width = found.words.shape[1]
    if states is None and token_dim > width:
        raise InputError(f"`token_dim` {token_dim}: the token table of {label} is {width} wide", f"choose 1 to {width}")
    if states is not None:
        check_holds_states(config, token_dim, label)
    student = _empty(config, token_dim, len(found.positions), len(found.types))
    with torch.no_grad():
        if states is not None:
            _meet(student, states, token_dim)
        elif token_dim == width:
            _copy(student, found)
        else:
            _decompose(student, found, token_dim)
    student.encoder.load_state_dict(transformer.encoder.state_dict())
    return student  # type: ignore[no-any-return]


def is_factorisable(config: Mapping[str, Any]) -> bool:
    """Whether a model with this configuration, as in its file, has a token table that can be factorised."""
    absolute = config.get("position_embedding_type", "absolute") == "absolute"
    return config.get("model_type") in FACTORISABLE and absolute


def check_factorisable(config: Any, label: str) -> None:
    """Raise InputError for an architecture whose token table cannot be factorised."""
    find_family(config, FACTORISABLE, f"the token table of {label} cannot be factorised", "`token_dim`")
    if getattr(config, "position_embedding_type", "absolute") != "absolute":
        raise InputError(f"{label} has positions of type {config.position_embedding_type!r}; ELECTRA's are absolute")


def check_holds_states(config: Any, token_dim: int, label: str) -> None:
    """Raise InputError if a table of width `token_dim` cannot hold the teacher's states."""
    hidden = int(config.hidden_size)
    if not SPARE < token_dim < hidden:
        raise InputError(
            f"`token_dim` {token_dim} cannot hold states of {label}, which are {hidden} wide",
            f"choose {SPARE + 1} to {hidden - 1}, or omit `start`",
        )


def _embeddings(transformer: Any) -> _Embeddings:
    config, module = transformer.config, transformer.embeddings
    hidden = int(config.hidden_size)
    project = table_projection(transformer)
    return _Embeddings(
        words=module.word_embeddings.weight.detach(),
        positions=module.position_embeddings.weight.detach()[first_position(module.position_embeddings) :],
        types=module.token_type_embeddings.weight.detach(),
        weight=module.LayerNorm.weight.detach(),
        bias=module.LayerNorm.bias.detach(),
        project=torch.eye(hidden) if project is None else project.weight.detach(),
        project_bias=torch.zeros(hidden) if project is None else project.bias.detach(),
        own_project=project is not None,
    )


def _empty(config: Any, token_dim: int, positions: int, types: int) -> Any:
    """An ElectraModel with the teacher's dimensions and random weights."""
    from transformers import ElectraConfig, ElectraModel

    settings = {name: getattr(config, name) for name in (*COMMON_SETTINGS, "num_hidden_layers")}
    student = ElectraModel(
        ElectraConfig(**settings, embedding_size=token_dim, max_position_embeddings=positions, type_vocab_size=types)
    )
    student.config._attn_implementation = config._attn_implementation
    return student.eval()


def _copy(student: Any, found: _Embeddings) -> None:
    """Copy the teacher's embedding layer."""
    _set(student.embeddings, found.words, found.positions, found.types)
    student.embeddings.LayerNorm.weight.copy_(found.weight)
    student.embeddings.LayerNorm.bias.copy_(found.bias)
    if found.own_project:
        student.embeddings_project.weight.copy_(found.project)
        student.embeddings_project.bias.copy_(found.project_bias)


def _decompose(student: Any, found: _Embeddings, token_dim: int) -> None:
    words, positions, types = (
        (table - table.mean(dim=1, keepdim=True)).double() for table in (found.words, found.positions, found.types)
    )
    basis = torch.linalg.svd(words, full_matrices=False).Vh[:token_dim].T  # [d, e]
    basis = basis @ _last_to_mean(token_dim).T
    _set(student.embeddings, words @ basis, positions @ basis, types @ basis)
    scale = _scale(words, positions, types, basis)
    project = found.project.double()
    # The teacher's LayerNorm(x) W + b and its projection, with the narrow vector instead of x.
    student.embeddings_project.weight.copy_(scale * project @ (found.weight.double().unsqueeze(1) * basis))
    student.embeddings_project.bias.copy_(project @ found.bias.double() + found.project_bias)


def _meet(student: Any, found: TokenStates, token_dim: int) -> None:
    """Make the embedding layer output the states' mean plus their first e - 2 principal axes.

    LayerNorm removes a vector's mean and length. So the direction of the mean stays empty, and another one pads every
    row to the same length; the projection ignores both.
    """
    # Square root of the counts: common tokens matter more, but rare ones are numerous.
    weight = (found.counts + COUNT_FLOOR).sqrt().unsqueeze(1)
    weight = weight / weight.sum()
    mean = (weight * found.states).sum(0)
    centred = found.states - mean
    axes = torch.linalg.eigh(centred.T @ (weight * centred)).eigenvectors.flip(1)[:, : token_dim - SPARE]  # [H, e - 2]
    words, moved = centred @ axes, found.positions @ axes
    lengths = words.norm(dim=1)
    longest = torch.quantile(lengths, LONGEST)
    words = words * (longest / lengths.clamp_min(1e-12)).clamp_max(1).unsqueeze(1)
    filled = (longest.square() - words.square().sum(1)).clamp_min(0).sqrt()
    # The length of the sum of token and position if they are orthogonal.
    length = (longest.square() + moved.square().sum(1).mean()).sqrt()
    turn = _last_to_mean(token_dim).T
    empty = torch.zeros_like(filled)
    positions = words.new_zeros(len(student.embeddings.position_embeddings.weight), token_dim)
    positions[: len(moved), :-SPARE] = moved[: len(positions)]
    _set(
        student.embeddings,
        torch.cat([words, torch.stack([filled, empty], dim=1)], dim=1) @ turn,
        positions @ turn,
        torch.zeros_like(student.embeddings.token_type_embeddings.weight),
    )
    back = torch.cat([axes, axes.new_zeros(len(axes), SPARE)], dim=1) @ turn
    student.embeddings_project.weight.copy_(back * length / math.sqrt(token_dim))
    student.embeddings_project.bias.copy_(mean)


def _last_to_mean(size: int) -> Tensor:
    """The reflection that maps the last axis to the direction of the mean: [e, e], orthogonal."""
    mean = torch.full((size,), 1 / math.sqrt(size), dtype=torch.float64)
    last = torch.zeros(size, dtype=torch.float64)
    last[-1] = 1.0
    normal = mean - last
    length = normal.square().sum()
    if length == 0:
        return torch.eye(size, dtype=torch.float64)
    return torch.eye(size, dtype=torch.float64) - 2 * torch.outer(normal, normal) / length


def _scale(words: Tensor, positions: Tensor, types: Tensor, basis: Tensor) -> float:
    """The scale of the narrow vectors relative to the teacher's normalised vectors, as a mean over tokens.

    LayerNorm outputs vectors of length sqrt(d) in the wide space and sqrt(e) in the narrow one; only the share of the
    wide vector within the basis can be matched.
    """
    rows = torch.linspace(0, len(words) - 1, min(SAMPLE, len(words))).long()
    sums = words[rows] + positions[rows % min(32, len(positions))] + types[0]
    share = ((sums @ basis).norm(dim=1) / sums.norm(dim=1).clamp_min(1e-12)).mean()
    width, token_dim = basis.shape
    return float(share) * math.sqrt(width / token_dim)


def _set(embeddings: Any, words: Tensor, positions: Tensor, types: Tensor) -> None:
    embeddings.word_embeddings.weight.copy_(words)
    embeddings.position_embeddings.weight.copy_(positions)
    embeddings.token_type_embeddings.weight.copy_(types)
    embeddings.LayerNorm.weight.fill_(1.0)
    embeddings.LayerNorm.bias.zero_()
