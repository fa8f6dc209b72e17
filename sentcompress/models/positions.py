"""How many tokens a model can read: its table of positions, and where in it the first token stands."""

from __future__ import annotations

from typing import Any

from torch import nn


def first_position(table: nn.Embedding) -> int:
    """The row of a first token.

    RoBERTa and its kin (XLM-R, CamemBERT, MPNet) keep the rows up to `padding_idx` for padding and count from the next.
    """
    return 0 if table.padding_idx is None else table.padding_idx + 1


def readable_positions(transformer: Any) -> int | None:
    """Tokens that the position table has rows for, or that the configuration names where there is no table."""
    table = getattr(getattr(transformer, "embeddings", None), "position_embeddings", None)
    if isinstance(table, nn.Embedding):
        return table.num_embeddings - first_position(table)
    return getattr(transformer.config, "max_position_embeddings", None)
