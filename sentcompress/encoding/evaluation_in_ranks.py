"""An evaluation in several ranks: rank 0 evaluates, the others encode for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sentcompress.commands.options import Options
from sentcompress.encoding.embedder import Embedder
from sentcompress.encoding.embedder_sources import ModelEmbedder, load_bare
from sentcompress.encoding.sharing import serve, sharing
from sentcompress.models.catalog import NamedModel
from sentcompress.models.devices import pick_device
from sentcompress.models.sources import check_same
from sentcompress.progress import Reporter
from sentcompress.ranks.group import joined

Outcome = TypeVar("Outcome")


def evaluate_together(params: Options, reporter: Reporter, evaluate: Callable[[], Outcome]) -> Outcome | None:
    """The outcome of an evaluation on rank 0; None on the others.

    Raises:
        RankError: see `ranks.group.joined`.
    """
    with joined(params, None, pick_device(getattr(params, "device", "auto")), reporter) as ranks:
        if not ranks.first:
            serve(ranks, _opened)
            return None
        with sharing(ranks):
            return evaluate()


def _opened(model: NamedModel, device: str, dtype: str) -> Embedder:
    check_same(model.source)  # in other commands, the ranks compare the digests of their inputs
    return ModelEmbedder(load_bare(model), device=device, dtype=dtype)
