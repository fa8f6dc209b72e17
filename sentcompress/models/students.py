"""Where a student starts: the teacher's last layers, made smaller if asked, or another model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from sentcompress.errors import InputError, UsageError
from sentcompress.models.encoder import Encoder
from sentcompress.models.factorised import check_factorisable, check_holds_states, factorised
from sentcompress.models.feed_forward import Activity, check_narrowable, measure_activity, narrow_feed_forward
from sentcompress.models.layout import load_encoder
from sentcompress.models.repeated import repeated
from sentcompress.models.sources import Source
from sentcompress.models.token_states import TokenStates, measure_token_states
from sentcompress.models.vocabulary import count_tokens, trim_vocabulary
from sentcompress.progress import SILENT, Reporter
from sentcompress.store import name_part

TEACHER_LAYERS = re.compile(r"teacher:(.*)")
# Where each architecture keeps its layers, and what its configuration calls their number.
LAYERS = {
    "bert": ("encoder.layer", "num_hidden_layers"),
    "roberta": ("encoder.layer", "num_hidden_layers"),
    "xlm-roberta": ("encoder.layer", "num_hidden_layers"),
    "camembert": ("encoder.layer", "num_hidden_layers"),
    "electra": ("encoder.layer", "num_hidden_layers"),
    "mpnet": ("encoder.layer", "num_hidden_layers"),
    "distilbert": ("transformer.layer", "n_layers"),
}
# What the narrow parts of `teacher:K` are made from: the teacher's weights alone, as published, or what it does with
# sentences.
WEIGHTS, SENTENCES = "weights", "sentences"
STARTS = (WEIGHTS, SENTENCES)
# Sentences that tell how neurons vary; there are fewer neurons than tokens, so that fewer will do.
ACTIVITY_TEXTS = 500


@dataclass(frozen=True)
class Student:
    """A student that was found, not yet loaded.

    Attributes:
        label: the name to show.
        source: the files that its weights come from: the teacher's for `teacher:K`.
        layers: for `teacher:K`, K.
        token_dim: for `teacher:K`, the width of a factorised token table; None keeps the teacher's table.
        vocabulary: for `teacher:K`, how many tokens are left; None keeps them all.
        character_count: for a smaller vocabulary, how often a character must be seen to be left; 0 leaves all.
        feed_forward: for `teacher:K`, how many neurons of each feed-forward network are left; None keeps them all.
        passes: for `teacher:K` with a factorised table, how often it goes through its layers.
        start: for `teacher:K`, one of STARTS: what a narrow table and narrow networks are made from.
        pooling: how a checkpoint without modules is pooled.
        trust_remote_code: whether the user allows the model to run its own code.
    """

    label: str
    source: Source
    layers: int | None = None
    token_dim: int | None = None
    vocabulary: int | None = None
    character_count: int = 0
    feed_forward: int | None = None
    passes: int = 1
    start: str = WEIGHTS
    pooling: str = "auto"
    trust_remote_code: bool = False

    @property
    def slug(self) -> str:
        """The label as a part of an artifact's name."""
        name = Path(self.label).resolve().name if Path(self.label).is_dir() else self.label.rsplit("/", 1)[-1]
        start = name_part(name).lower() or "student"
        start += "" if self.token_dim is None else f"-e{self.token_dim}"
        start += "" if self.vocabulary is None else f"-v{self.vocabulary}"
        start += f"-c{self.character_count}" if self.character_count else ""
        start += "" if self.feed_forward is None else f"-f{self.feed_forward}"
        start += "" if self.passes == 1 else f"-p{self.passes}"
        return start if self.start == WEIGHTS else f"{start}-{self.start}"

    def load(
        self,
        texts: Iterable[Sequence[str]] = (),
        sample: Sequence[str] = (),
        device: str | torch.device = "cpu",
        reporter: Reporter = SILENT,
    ) -> Encoder:
        """The encoder to train, float32; its vectors are normalised once it is deployed, whatever it starts from.

        Args:
            texts: what a smaller vocabulary is chosen by.
            sample: what the teacher is watched on, where the student starts from that.
            device: where that is done; the encoder comes back on the CPU.

        Raises:
            ValueError: if the student starts from sentences, and there is no sample.
            InputError: if the teacher's layers cannot be taken from it or narrowed, its vocabulary not be trimmed, or
                its token table not be factorised.
        """
        encoder = load_encoder(self.source, pooling=self.pooling, trust_remote_code=self.trust_remote_code)
        if self.token_dim is not None:
            # First of all: fewer architectures have such a table than layers that can be taken.
            check_factorisable(encoder.config, self.source.label)
        if self.vocabulary is not None:
            counts = count_tokens(encoder, texts)
            trim_vocabulary(encoder, self.vocabulary, counts, self.source.label, self.character_count)
        if self.layers is not None:
            states, activity = self._watch(encoder, self.layers, sample, device, reporter)
            self._cut(encoder, self.layers, states, activity)
        encoder.normalize = True
        return encoder

    def _watch(
        self, encoder: Encoder, count: int, sample: Sequence[str], device: str | torch.device, reporter: Reporter
    ) -> tuple[TokenStates | None, list[Activity]]:
        """What the teacher does with the sample, as far as the student starts from that."""
        if self.start == WEIGHTS:
            return None, []
        if not sample:
            raise ValueError("a start from sentences needs some")
        label, kept = self.source.label, last_layers(encoder.transformer, count, self.source.label)
        states: TokenStates | None = None
        activity: list[Activity] = []
        # Before the minutes that it takes, what would be wrong after them.
        if self.token_dim is not None:
            check_holds_states(encoder.config, self.token_dim, label)
        if self.feed_forward is not None:
            check_narrowable(encoder.config, self.feed_forward, label)
        encoder.to(device)
        if self.token_dim is not None:
            before = int(encoder.config.num_hidden_layers) - count
            with (
                reporter.track("sentences of the teacher", total=len(sample)) as sentences,
                reporter.track("tokens of the teacher", total=len(encoder.tokenizer), unit="tokens") as tokens,
            ):
                states = measure_token_states(encoder, before, sample, sentences, tokens)
        if self.feed_forward is not None:
            fewer = sample[:: -(-len(sample) // ACTIVITY_TEXTS)]
            with reporter.track("neurons of the teacher", total=len(fewer)) as task:
                activity = measure_activity(encoder, kept, fewer, label, task)
        encoder.to("cpu")
        return states, activity

    def _cut(self, encoder: Encoder, count: int, states: TokenStates | None, activity: Sequence[Activity]) -> None:
        """Leave `count` layers of the teacher, and of its table and their networks what was asked for."""
        label, kept = self.source.label, last_layers(encoder.transformer, count, self.source.label)
        keep_last_layers(encoder.transformer, count, label)
        if self.feed_forward is not None:
            narrow_feed_forward(encoder.transformer, kept, self.feed_forward, label, activity)
        if self.token_dim is not None:
            encoder.transformer = factorised(encoder.transformer, self.token_dim, label, states)
        if self.passes > 1:
            encoder.transformer = repeated(encoder.transformer, self.passes)


def layer_count(name: str) -> int | None:
    """K of `teacher:K`; None for any other name.

    Raises:
        UsageError: if K is not a whole number above zero.
    """
    match = TEACHER_LAYERS.fullmatch(name)
    if match is None:
        return None
    if not match[1].isdecimal() or int(match[1]) == 0:
        raise UsageError(f"{name!r}: the number of layers must be 1 or more", "for example `student` teacher:3")
    return int(match[1])


def teacher_layers(
    name: str,
    teacher: Source,
    pooling: str,
    trust_remote_code: bool,
    *,
    token_dim: int | None = None,
    vocabulary: int | None = None,
    character_count: int = 0,
    feed_forward: int | None = None,
    passes: int = 1,
    start: str = WEIGHTS,
) -> Student:
    """The student `teacher:K`, made of the teacher's own files and pooled as the teacher is."""
    layers = layer_count(name)
    return Student(
        name,
        teacher,
        layers,
        token_dim=token_dim,
        vocabulary=vocabulary,
        character_count=character_count,
        feed_forward=feed_forward,
        passes=passes,
        start=start,
        pooling=pooling,
        trust_remote_code=trust_remote_code,
    )


def last_layers(transformer: nn.Module, count: int, label: str) -> nn.ModuleList:
    """The last `count` layers of a transformer.

    Raises:
        InputError: if it has fewer layers, or is of an architecture that is not in LAYERS.
    """
    config: Any = transformer.config
    if config.model_type not in LAYERS:
        raise InputError(
            f"the layers of {label} cannot be taken: its architecture is {config.model_type!r}",
            f"teacher:K works with {', '.join(LAYERS)}; choose another --student",
        )
    layers: Any = transformer.get_submodule(LAYERS[config.model_type][0])
    if count > len(layers):
        raise InputError(f"teacher:{count}: {label} has {len(layers)} layers", f"choose 1 to {len(layers)}")
    return nn.ModuleList(layers[len(layers) - count :])


def keep_last_layers(transformer: nn.Module, count: int, label: str) -> None:
    """Drop all but the last `count` layers of a transformer, in place; its embeddings stay.

    Raises:
        InputError: see `last_layers`.
    """
    kept, config = last_layers(transformer, count, label), cast("Any", transformer.config)
    place, setting = LAYERS[config.model_type]
    parent, _, attribute = place.rpartition(".")
    setattr(transformer.get_submodule(parent), attribute, kept)
    setattr(config, setting, count)
