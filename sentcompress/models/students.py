"""Where a student starts: a preset, the teacher's last layers, a folder, a hub name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from sentcompress.artifacts import name_part
from sentcompress.errors import InputError, UsageError, did_you_mean
from sentcompress.models.encoder import Encoder
from sentcompress.models.factorised import factorised
from sentcompress.models.feed_forward import narrow_feed_forward
from sentcompress.models.layout import load_encoder
from sentcompress.models.sources import EMBEDDED, Source, resolve
from sentcompress.models.vocabulary import count_tokens, trim_vocabulary

# The students of the papers.
PRESETS = {
    "tinybert": "nreimers/TinyBERT_L-4_H-312_v2",
    "tinybert-huawei": "huawei-noah/TinyBERT_General_4L_312D",
    "tinybert6": "huawei-noah/TinyBERT_General_6L_768D",
    "minilm": "nreimers/MiniLM-L6-H384-uncased",
    "bert-base": "bert-base-uncased",
}
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


@dataclass(frozen=True)
class Student:
    """A student that was found, not yet loaded.

    Attributes:
        label: the name as given.
        source: the files that its weights come from: the teacher's for `teacher:K`.
        layers: for `teacher:K`, K.
        token_dim: for `teacher:K`, the width of a factorised token table; None keeps the teacher's table.
        vocabulary: for `teacher:K`, how many tokens are left; None keeps them all.
        feed_forward: for `teacher:K`, how many neurons of each feed-forward network are left; None keeps them all.
        pooling: how a checkpoint without modules is pooled.
    """

    label: str
    source: Source
    layers: int | None = None
    token_dim: int | None = None
    vocabulary: int | None = None
    feed_forward: int | None = None
    pooling: str = "auto"
    trust_remote_code: bool = False

    @property
    def slug(self) -> str:
        """The label as a part of an artifact's name."""
        name = Path(self.label).resolve().name if Path(self.label).is_dir() else self.label.rsplit("/", 1)[-1]
        start = name_part(name).lower() or "student"
        start += "" if self.token_dim is None else f"-e{self.token_dim}"
        start += "" if self.vocabulary is None else f"-v{self.vocabulary}"
        return start if self.feed_forward is None else f"{start}-f{self.feed_forward}"

    def load(self, texts: Iterable[Sequence[str]] = ()) -> Encoder:
        """The encoder to train, float32; its vectors are normalised once it is deployed, whatever it starts from.

        Args:
            texts: what a smaller vocabulary is chosen by.

        Raises:
            InputError: if the teacher's layers cannot be taken from it or narrowed, its vocabulary not be trimmed, or
                its token table not be factorised.
        """
        encoder = load_encoder(self.source, pooling=self.pooling, trust_remote_code=self.trust_remote_code)
        if self.vocabulary is not None:
            trim_vocabulary(encoder, self.vocabulary, count_tokens(encoder, texts), self.source.label)
        if self.layers is not None:
            keep_last_layers(encoder.transformer, self.layers, self.source.label)
        if self.feed_forward is not None:
            layers: Any = encoder.transformer.get_submodule(LAYERS[encoder.config.model_type][0])
            narrow_feed_forward(encoder.transformer, layers, self.feed_forward, self.source.label)
        if self.token_dim is not None:
            encoder.transformer = factorised(encoder.transformer, self.token_dim, self.source.label)
        encoder.normalize = True
        return encoder


def layer_count(name: str) -> int | None:
    """K of `teacher:K`; None for any other name.

    Raises:
        UsageError: if K is not a whole number above zero.
    """
    match = TEACHER_LAYERS.fullmatch(name)
    if match is None:
        return None
    if not match[1].isdecimal() or int(match[1]) == 0:
        raise UsageError(f"{name!r}: the number of layers must be 1 or more", "for example --student teacher:3")
    return int(match[1])


def teacher_layers(
    name: str,
    teacher: Source,
    pooling: str,
    trust_remote_code: bool,
    *,
    token_dim: int | None = None,
    vocabulary: int | None = None,
    feed_forward: int | None = None,
) -> Student:
    """The student `teacher:K`, made of the teacher's own files and pooled as the teacher is."""
    return Student(name, teacher, layer_count(name), token_dim, vocabulary, feed_forward, pooling, trust_remote_code)


def find_student(name: str, *, revision: str | None = None, trust_remote_code: bool = False) -> Student:
    """Find the student called `name`: a preset, `embedded`, a folder, or a hub name.

    Raises:
        UsageError: if the name is nearly that of a preset.
        InputError: if there is no such model.
    """
    if name not in PRESETS and name != EMBEDDED and "/" not in name and not Path(name).exists():
        _refuse_near_miss(name)
    source = resolve(PRESETS.get(name, name), revision=revision, trust_remote_code=trust_remote_code)
    return Student(name, source, trust_remote_code=trust_remote_code)


def _refuse_near_miss(name: str) -> None:
    """A bare word is a slip of the finger far more often than one of the hub's few names without an owner."""
    known = [*PRESETS, "teacher:3", EMBEDDED]
    hint = did_you_mean(name, known)
    if hint.startswith("did you mean"):
        raise UsageError(f"no student {name!r}", f"{hint} ({_choices()})")


def _choices() -> str:
    return f"students: teacher:K, {', '.join(PRESETS)}, a model folder, a hub name"


def keep_last_layers(transformer: nn.Module, count: int, label: str) -> None:
    """Drop all but the last `count` layers of a transformer, in place; its embeddings stay.

    Raises:
        InputError: if it has fewer layers, or is of an architecture that is not in LAYERS.
    """
    config: Any = transformer.config
    if config.model_type not in LAYERS:
        raise InputError(
            f"the layers of {label} cannot be taken: its architecture is {config.model_type!r}",
            f"teacher:K works with {', '.join(LAYERS)}; choose another --student",
        )
    place, setting = LAYERS[config.model_type]
    parent_name, _, attribute = place.rpartition(".")
    parent = transformer.get_submodule(parent_name)
    layers: Any = getattr(parent, attribute)
    if count > len(layers):
        raise InputError(f"teacher:{count}: {label} has {len(layers)} layers", f"choose 1 to {len(layers)}")
    setattr(parent, attribute, nn.ModuleList(layers[len(layers) - count :]))
    setattr(config, setting, count)
