"""Training runs and encoders of any size, with random weights and random sentences; nothing is fetched.

Shared by gpu.py and step_profile.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from sentcompress.commands.training import TrainingOptions
from sentcompress.methods.base import Method, Shapes
from sentcompress.methods.ckd import CKD
from sentcompress.methods.simcse import SimCSE
from sentcompress.models.encoder import Encoder
from sentcompress.models.text_settings import TextSettings
from sentcompress.models.token_batches import TokenRows
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.progress import SILENT
from sentcompress.store import Request, WorkDirectory
from sentcompress.store.shard import Shard
from sentcompress.training.batches import Batch, BatchPlan, Rows, collate
from sentcompress.training.checkpoint import Checkpoints
from sentcompress.training.loop import Training
from sentcompress.training.residence import rows_of
from sentcompress.training.settings import Settings
from sentcompress.training.triplets import TripletData
from sentcompress.training.views import DistillationViews, TripletViews, Views

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# Tokens of a sentence, special ones included.
LENGTHS = (8, 48)


@dataclass(frozen=True)
class Size:
    """The size of a BERT."""

    name: str
    layers: int
    width: int
    neurons: int
    vocabulary: int = 30_522

    @property
    def body(self) -> int:
        """Weights of the layers that multiply every token."""
        return self.layers * (4 * self.width**2 + 2 * self.width * self.neurons)

    def flops(self, length: float) -> float:
        """Multiplications and additions of one token in a forward pass, in sentences of some length."""
        return 2 * self.body + 4 * self.layers * self.width * length


TINY = Size("tiny", 2, 32, 64, 500)
TINYBERT = Size("TinyBERT", 4, 312, 1200)
BERT_BASE = Size("BERT-base", 12, 768, 3072)


class _NoDev:
    """A dev score that costs nothing."""

    measure, protocol, slack = "none", "none", 0.0

    def score(self, vectors: object, device: torch.device) -> float:
        return 0.0


def make_encoder(size: Size, folder: Path) -> Encoder:
    """A random BERT, and a tokenizer of the words w0, w1, ..."""
    words = folder / f"{size.name}.txt"
    words.write_text("\n".join([*SPECIAL, *(f"w{number}" for number in range(size.vocabulary - len(SPECIAL)))]) + "\n")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=12 if size.width % 12 == 0 else 4,
        intermediate_size=size.neurons,
    )
    body = BertModel(config, add_pooling_layer=False)
    return TransformerEncoder(body, BertTokenizerFast(str(words), model_max_length=512), text=TextSettings(512))


def make_texts(size: Size, count: int) -> list[str]:
    """Sentences whose numbers of tokens are those of LENGTHS."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(LENGTHS[0] - 2, LENGTHS[1] - 1, size=count)
    words = generator.integers(0, size.vocabulary - len(SPECIAL), size=int(lengths.sum())).tolist()
    ends = np.cumsum(lengths).tolist()
    return [
        " ".join(f"w{word}" for word in words[end - n : end]) for end, n in zip(ends, lengths.tolist(), strict=True)
    ]


def make_tokens(size: Size, count: int) -> TokenRows:
    """Random token ids of such sentences."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(LENGTHS[0], LENGTHS[1] + 1, size=count).astype(np.int32)
    flat = generator.integers(len(SPECIAL), size.vocabulary, size=int(lengths.sum())).astype(np.int32)
    return TokenRows.joined(flat, lengths)


def make_training(
    work: str, size: Size, device: torch.device, folder: Path, *, rows: int, queue: int, teacher: int, **numbers: object
) -> Training:
    """A run of `distill` (work "ckd") or `finetune` (work "simcse") that is scored and saved for nothing.

    Args:
        rows: sentences, or triplets with one hard negative.
        queue: the length of CKD's queue.
        teacher: dimensions of the teacher's vectors.
        numbers: hyperparameters.
    """
    encoder, shapes = make_encoder(size, folder), Shapes(size.width, teacher, hidden=size.width, hard_negatives=1)
    given = {"schedule": "constant", "warmup_steps": 0, "epochs": 1000, "eval_every": 10**6, **numbers}
    options = TrainingOptions(checkpoint_seconds=1e6, **given)  # type: ignore[arg-type]
    method: Method
    gather: Callable[[Rows, Shard], Batch]
    views: Views
    if work == "ckd":
        tokens = make_tokens(size, rows)
        method = CKD(shapes, {"queue": queue, "head": "linear"})
        settings = Settings.of(method.recipe, options)
        table = torch.randn(rows, teacher, device=device)
        fields, views = {"teacher": rows_of(table)}, DistillationViews(encoder, method.needs)

        def of_sentences(asked: Rows, share: Shard) -> Batch:
            return collate(asked, tokens, fields, 0, share)

        gather = of_sentences
        budget = settings.token_budget(method.contrastive)
        plan = BatchPlan(np.arange(rows), tokens.lengths, settings.batch_size, budget, 0, settings.by_length)
    else:
        data = TripletData(np.arange(3 * rows).reshape(rows, 3), make_tokens(size, 3 * rows), 0)
        method, gather = SimCSE(shapes, {}), data.collate
        settings = Settings.of(method.recipe, options)
        plan, views = data.plan(np.arange(rows), settings), TripletViews(encoder, method.needs)
    with WorkDirectory(folder / f"{work}-{size.name}").build(Request("students", "one", "distill", {})) as build:
        log, checkpoints = build.path / "log.jsonl", Checkpoints(build, "state", background=device.type == "cuda")
        log.touch()
    return Training(encoder, method, plan, gather, views, _NoDev(), settings, device, checkpoints, log, SILENT)
