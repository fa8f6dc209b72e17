"""Training data: sentences with their tokens, and the other values of each row of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from sentcompress.corpora.sentence_table import SentenceTable
from sentcompress.encoding.npy_files import NpyFiles
from sentcompress.errors import InputError
from sentcompress.methods.base import Method
from sentcompress.models.encoder import Encoder
from sentcompress.models.token_batches import TokenRows
from sentcompress.progress import Reporter
from sentcompress.ranks.alone import Ranks
from sentcompress.store import SCAFFOLD, Build
from sentcompress.store.shard import Shard
from sentcompress.training.batches import WHOLE, Batch, BatchPlan, RowField, Rows, collate
from sentcompress.training.dev import Dev, held_out_dev, hold_out
from sentcompress.training.settings import Settings
from sentcompress.training.token_cache import TextFiles, build_token_cache

# Needed only during training, and removed when the artifact is finished.
STATE = f"{SCAFFOLD}/state"
# Fewest held-out sentences for the correlation of similarities: two sentences have a single similarity.
AGREEING = 3


class TrainingData(Protocol):
    """Rows of training data, some of which can be held out, and their batches."""

    def rows_and_dev(self, graded: Dev | None, seed: int) -> tuple[Rows, Dev]:
        """The rows to train on, and the dev score for checkpoint selection: `graded`, else on held-out rows.

        Raises:
            InputError: if there are too few to hold some out.
        """

    def plan(self, rows: Rows, settings: Settings) -> BatchPlan:
        """The batches of these rows."""

    def collate(self, rows: Rows, share: Shard = WHOLE) -> Batch:
        """The tensors of these rows, or of one rank's share of them."""


@dataclass(frozen=True)
class SentenceData:
    """Sentences to distil on.

    Attributes:
        name: the reference of the sentence table, for messages.
        fields: values of each row, such as its teacher vector.
        pad: the token id of padding.
        method: gives the target of the held-out sentences, and says whether rows of a batch are each other's negatives.
    """

    name: str
    table: SentenceTable
    tokens: TokenRows
    fields: Mapping[str, RowField]
    pad: int
    method: Method

    def rows_and_dev(self, graded: Dev | None, seed: int) -> tuple[Rows, Dev]:
        """See `TrainingData`."""
        if graded is not None:
            return np.arange(len(self.table)), graded
        target = self.method.target if self.method.has_target() else None
        rows, held = hold_out(self.table.parents(), seed)
        if len(rows) == 0 or (target is None and len(held) < AGREEING):
            raise InputError(
                f"{self.name} has too few sentences to hold some out",
                "add more sentences, or select checkpoints by graded pairs with `dev`",
            )
        return rows, held_out_dev(held, self.collate, target)

    def plan(self, rows: Rows, settings: Settings) -> BatchPlan:
        """See `TrainingData`."""
        budget = settings.token_budget(self.method.contrastive)
        lengths = self.tokens.lengths[rows]
        return BatchPlan(rows, lengths, settings.batch_size, budget, settings.seed, settings.by_length)

    def collate(self, rows: Rows, share: Shard = WHOLE) -> Batch:
        """See `TrainingData`."""
        return collate(rows, self.tokens, self.fields, self.pad, share)


def tokenised(
    encoder: Encoder,
    settings: Settings,
    table: TextFiles,
    build: Build,
    reporter: Reporter,
    ranks: Ranks,
    name: str = "tokens",
) -> TokenRows:
    """The token ids of a sentence table, made once for a build; the ranks share the work."""

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        return encoder.tokenize(texts, settings.max_length)

    return build_token_cache(build, f"{STATE}/{name}", table, tokenize, reporter, ranks)


def vector_field(vectors: NpyFiles) -> RowField:
    """Cached vectors of rows: [B] -> [B, D]."""

    def take(rows: Rows) -> Tensor:
        # torch's own memory is aligned the same way in every process; sums over it round the same way too.
        found = torch.empty((len(rows), vectors.dimension), dtype=torch.float32)
        found.numpy()[:] = vectors.rows(rows)
        return found

    return take


def number_field(numbers: Rows) -> RowField:
    """A number of each row: [B] -> [B]."""
    return lambda rows: torch.from_numpy(np.ascontiguousarray(numbers[rows]))
