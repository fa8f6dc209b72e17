"""Initial students: the teacher's last layers or another model, made smaller if asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from sentcompress.errors import InputError
from sentcompress.models.encoder import Encoder
from sentcompress.models.factorised import check_factorisable, check_holds_states, factorised
from sentcompress.models.families import FAMILIES, WITH_LAYERS, Family, find_family
from sentcompress.models.feed_forward import Activity, check_narrowable, measure_activity, narrow_feed_forward
from sentcompress.models.layout import load_pooled, model_size
from sentcompress.models.repeated import repeated
from sentcompress.models.shape import RANDOM, SENTENCES, Shape, Size
from sentcompress.models.sources import ModelSource
from sentcompress.models.static_start import static_student
from sentcompress.models.token_states import TokenStates, measure_token_states
from sentcompress.models.transformer_encoder import TransformerEncoder
from sentcompress.models.vocabulary import token_occurrences, trim_vocabulary
from sentcompress.progress import SILENT, Reporter
from sentcompress.quantities import counted
from sentcompress.store import name_part

# Sentences for measuring the activity of neurons: fewer than for tokens, because there are fewer neurons.
ACTIVITY_TEXTS = 500


@dataclass(frozen=True)
class InitialStudent:
    """A student before training, located but not loaded.

    Attributes:
        label: the name to show.
        source: the files with its weights; the teacher's for `teacher:K`.
        shape: the parts to keep: of the teacher for `teacher:K`, otherwise of the model itself.
        pooling: how a checkpoint without modules is pooled.
        new_pooling: the pooling to train instead, see `load_pooled`; `auto` for that of `pooling`.
        trust_remote_code: whether the user allows the model to run its own code.
    """

    label: str
    source: ModelSource
    shape: Shape = field(default_factory=Shape)
    pooling: str = "auto"
    new_pooling: str = "auto"
    trust_remote_code: bool = False

    @property
    def slug(self) -> str:
        """The label and shape as part of an artifact's name."""
        name = Path(self.label).resolve().name if Path(self.label).is_dir() else self.label.rsplit("/", 1)[-1]
        return (name_part(name).lower() or "student") + self.shape.suffix

    @property
    def size(self) -> Size:
        """Its size, according to the configuration it is made from."""
        return model_size(self.source, self.shape)

    def load(
        self,
        texts: Iterable[Sequence[str]] = (),
        sample: Sequence[str] = (),
        device: str | torch.device = "cpu",
        reporter: Reporter = SILENT,
    ) -> Encoder:
        """Load the encoder to train, in float32; the deployed student always normalises its vectors.

        New parts get torch's random weights.

        Args:
            texts: texts for choosing a smaller vocabulary, and for the frequencies of a static student's tokens.
            sample: texts for measuring the teacher, if the shape starts from sentences.
            device: where the teacher is measured; the encoder is returned on the CPU.

        Raises:
            ValueError: if the shape starts from sentences, but there is no sample, or is static and there are no texts.
            InputError: if the teacher's layers cannot be cut or narrowed, its vocabulary cannot be trimmed, or its
                token table cannot be factorised.
        """
        shape, trusted = self.shape, self.trust_remote_code
        encoder = load_pooled(self.source, self.new_pooling, otherwise=self.pooling, trust_remote_code=trusted)
        if shape.start == SENTENCES and not sample:
            raise ValueError("start=sentences needs a sample of sentences")
        if isinstance(encoder, TransformerEncoder):
            encoder = self._shaped(encoder, texts, sample, device, reporter)
        elif shape.layers is not None:
            raise InputError(
                f"{self.source.label} is a static model, from which no student can be cut", "use another teacher"
            )
        elif shape.vocabulary is not None or shape.feed_forward is not None:
            raise InputError(
                f"{self.source.label} is a static model, which cannot be made smaller",
                "omit `vocabulary` and `feed_forward`",
            )
        elif shape.start == RANDOM:
            raise InputError(f"{self.source.label} is a static model, which has no random start", "omit `start`")
        encoder.normalize = True
        return encoder

    def _shaped(
        self,
        encoder: TransformerEncoder,
        texts: Iterable[Sequence[str]],
        sample: Sequence[str],
        device: str | torch.device,
        reporter: Reporter,
    ) -> Encoder:
        """The encoder in the shape that is asked for; `encoder` itself may be changed."""
        shape = self.shape
        self._check(encoder)
        counts = np.zeros(0, np.int64)
        if shape.static or shape.vocabulary is not None:
            counts = token_occurrences(encoder, texts)
        if shape.vocabulary is not None:
            kept = trim_vocabulary(encoder, shape.vocabulary, counts, self.source.label, shape.character_count)
            counts = counts[kept]
        if shape.static:
            if not np.delete(counts, encoder.tokenizer.all_special_ids).any():
                raise InputError(
                    f"{self.source.label} knows none of the tokens of the sentences",
                    "choose other `sentences`, or a teacher of their language",
                )
            return static_student(encoder.to(device), counts, sample, shape.token_dim, reporter)
        if shape.layers is not None or shape.feed_forward is not None:
            layers = encoder.depth if shape.layers is None else shape.layers
            states, activity = self._watch(encoder, layers, sample, device, reporter)
            self._cut(encoder, layers, states, activity)
        if shape.layers is not None:
            # Not every runtime knows them, and a student learns vectors that the teacher made with them.
            encoder.token_weights = None
        if shape.start == RANDOM:
            start_anew(encoder, layers_only=shape.layers is not None)
        return encoder

    def _check(self, encoder: TransformerEncoder) -> None:
        """Raise InputError, before anything slow, if the encoder does not have the parts to cut."""
        shape, label = self.shape, self.source.label
        if shape.static:
            return
        if shape.token_dim is not None:
            # Fewer architectures support this than cutting layers.
            check_factorisable(encoder.config, label)
        if shape.layers is not None:
            last_layers(encoder.transformer, shape.layers, label)
        if shape.feed_forward is not None:
            check_narrowable(encoder.config, shape.feed_forward, label)

    def _watch(
        self,
        encoder: TransformerEncoder,
        count: int,
        sample: Sequence[str],
        device: str | torch.device,
        reporter: Reporter,
    ) -> tuple[TokenStates | None, list[Activity]]:
        """Measure the teacher on the sample, as far as the shape needs it."""
        if self.shape.start != SENTENCES:
            return None, []
        label, kept = self.source.label, last_layers(encoder.transformer, count, self.source.label)
        states: TokenStates | None = None
        activity: list[Activity] = []
        # Check before the measurement, which takes minutes.
        if self.shape.token_dim is not None:
            check_holds_states(encoder.config, self.shape.token_dim, label)
        encoder.to(device)
        if self.shape.token_dim is not None:
            states = measure_token_states(encoder, encoder.depth - count, sample, reporter)
        if self.shape.feed_forward is not None:
            fewer = sample[:: -(-len(sample) // ACTIVITY_TEXTS)]
            with reporter.track("measuring feed-forward neurons", total=len(fewer)) as task:
                activity = measure_activity(encoder, kept, fewer, label, task)
        encoder.to("cpu")
        return states, activity

    def _cut(
        self, encoder: TransformerEncoder, count: int, states: TokenStates | None, activity: Sequence[Activity]
    ) -> None:
        """Cut the encoder to its last `count` layers, and narrow its table and networks as the shape says."""
        label, kept = self.source.label, last_layers(encoder.transformer, count, self.source.label)
        keep_last_layers(encoder.transformer, count, label)
        if self.shape.feed_forward is not None:
            narrow_feed_forward(encoder.transformer, kept, self.shape.feed_forward, label, activity)
        if self.shape.token_dim is not None:
            encoder.transformer = factorised(encoder.transformer, self.shape.token_dim, label, states)
        if self.shape.passes > 1:
            encoder.transformer = repeated(encoder.transformer, self.shape.passes)


@torch.no_grad()
def start_anew(encoder: TransformerEncoder, *, layers_only: bool) -> None:
    """Give an encoder, in place, the random weights that its architecture starts with, from torch's random state.

    Args:
        layers_only: the embeddings and the projection of a narrow token table keep their weights, as do Dense layers.
    """
    transformer: Any = encoder.transformer
    # Not the initialiser of the model itself: transformers passes over weights that were read from a file.
    fresh = type(transformer)(transformer.config).state_dict()
    kept = ("embeddings.", f"{FAMILIES[transformer.config.model_type].projection}.") if layers_only else ()
    for name, tensor in transformer.state_dict().items():
        if not name.startswith(kept):
            tensor.copy_(fresh[name])
    if not layers_only:
        for layer in encoder.dense_layers:
            layer.linear.reset_parameters()


def last_layers(transformer: nn.Module, count: int, label: str) -> nn.ModuleList:
    """The last `count` layers of a transformer.

    Raises:
        InputError: if it has fewer layers, or its architecture is not in WITH_LAYERS.
    """
    family = _family(transformer, label)
    layers: Any = transformer.get_submodule(str(family.layers))
    if count > len(layers):
        raise InputError(f"teacher:{count}: {label} has {counted(len(layers), 'layer')}", f"choose 1 to {len(layers)}")
    return nn.ModuleList(layers[len(layers) - count :])


def _family(transformer: nn.Module, label: str) -> Family:
    return find_family(transformer.config, WITH_LAYERS, f"the layers of {label} cannot be cut", "teacher:K")


def keep_last_layers(transformer: nn.Module, count: int, label: str) -> None:
    """Remove all but the last `count` layers of a transformer, in place; its embeddings stay.

    Raises:
        InputError: see `last_layers`.
    """
    kept, family = last_layers(transformer, count, label), _family(transformer, label)
    parent, _, attribute = str(family.layers).rpartition(".")
    setattr(transformer.get_submodule(parent), attribute, kept)
    setattr(transformer.config, family.layer_count, count)
