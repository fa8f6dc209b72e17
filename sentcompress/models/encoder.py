"""A sentence encoder: token states, pooling, optional linear layers, optional normalisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from sentcompress.errors import InputError
from sentcompress.models.pooling import pool
from sentcompress.models.text_settings import TextSettings as TextSettings
from sentcompress.models.text_settings import TransformersTokenizer, token_ids

# Longer texts, in characters, are cut before tokenization. A cut can change the tokens just before it, so the rest
# must have _MARGIN more tokens than are kept.
_LONG_TEXT = 2**18
_MARGIN = 128

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
    "Sigmoid": nn.Sigmoid,
    "SiLU": nn.SiLU,
}


class Dense(nn.Module):
    """A linear layer and its activation, as sentence-transformers' Dense module stores them."""

    def __init__(self, in_features: int, out_features: int, *, bias: bool = True, activation: str = "Identity") -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.activation_name = activation
        self.activation = ACTIVATIONS[activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        """[B, in_features] -> [B, out_features]."""
        return self.activation(self.linear(vectors))  # type: ignore[no-any-return]


class Encoder(nn.Module, ABC):
    """tokens -> token states -> (token weights) -> pooling -> dense layers -> normalisation.

    Subclasses compute the token states: they implement the abstract members and, if they have layers, override `depth`
    and the members after it. The encode engine, the training loop and the ONNX export use only this interface, so an
    encoder need not be a transformer.

    Args:
        tokenizer: as in transformers.
        pooling: names of pooling modes; their vectors are concatenated.
        dense: linear layers after the pooling.
        normalize: whether vectors are scaled to length one.
        text: how texts are prepared.
        token_weights: [V], the weight of each token of the vocabulary in the mean, not trained; None: equal weights.
    """

    def __init__(
        self,
        tokenizer: TransformersTokenizer,
        *,
        pooling: Sequence[str] = ("mean",),
        dense: Sequence[Dense] = (),
        normalize: bool = True,
        text: TextSettings,
        token_weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.pooling = tuple(pooling)
        self.dense = nn.ModuleList(dense)
        self.normalize = normalize
        self.text = text
        self.token_weights = None if token_weights is None else nn.Parameter(token_weights.clone(), requires_grad=False)

    def parts(self) -> dict[str, Any]:
        """The constructor arguments of this encoder by name, not copied."""
        return {
            "tokenizer": self.tokenizer,
            "pooling": self.pooling,
            "dense": self.dense_layers,
            "normalize": self.normalize,
            "text": self.text,
            "token_weights": self.token_weights,
        }

    def with_dense(self, dense: Sequence[Dense], *, normalize: bool) -> Self:
        """A new encoder with the same body and tokenizer and these linear layers."""
        return type(self)(**self.parts() | {"dense": dense, "normalize": normalize})

    @property
    @abstractmethod
    def body(self) -> nn.Module:
        """The module that computes the token states; the only part that runs in half precision."""

    @property
    @abstractmethod
    def architecture(self) -> str:
        """The name of the architecture, such as bert."""

    @property
    @abstractmethod
    def hidden_size(self) -> int:
        """H, the width of the token states."""

    @property
    @abstractmethod
    def table_size(self) -> int:
        """The number of rows of the token table."""

    @abstractmethod
    def hidden_states(
        self, input_ids: Tensor, attention_mask: Tensor | None, *, every_layer: bool
    ) -> tuple[Tensor, ...]:
        """Hidden states [B, T, H] of token ids [B, T], as computed by the body.

        Args:
            attention_mask: [B, T]; None if no row is padded.
            every_layer: return those of the embedding layer and of all `depth` layers, otherwise only the last.
        """

    @property
    def depth(self) -> int:
        """The number of layers after the embedding layer."""
        return 0

    @property
    def max_positions(self) -> int | None:
        """The maximum number of tokens per text; None if there is no limit."""
        return None

    def token_embeddings(self, input_ids: Tensor) -> Tensor:
        """Outputs of the embedding layer: [B, T] -> [B, T, H]."""
        return self.hidden_states(input_ids, None, every_layer=True)[0]

    def plain_attention(self) -> AbstractContextManager[None]:
        """Use unfused (eager) attention inside the block."""
        return nullcontext()

    def make(self) -> tuple[object, ...]:
        """Everything about the architecture that the shapes of the weights do not show."""
        return (self.architecture, self.depth)

    @property
    def dense_layers(self) -> list[Dense]:
        """The dense layers."""
        return [layer for layer in self.dense if isinstance(layer, Dense)]

    @property
    def padding(self) -> int:
        """The token id used for padding."""
        return int(self.tokenizer.pad_token_id or 0)

    @property
    def pooled_dimension(self) -> int:
        """D_s, the width after pooling and before any dense layer."""
        return self.hidden_size * len(self.pooling)

    @property
    def dimension(self) -> int:
        """Width of the vectors that `forward` returns."""
        return self.dense_layers[-1].linear.out_features if self.dense_layers else self.pooled_dimension

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def count_parameters(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def tokenize(self, texts: Sequence[str], max_length: int | None = None) -> list[list[int]]:
        """Token ids of each text, special tokens included, cut at `max_length` or the model's maximum length.

        Raises:
            InputError: if that leaves no room for a word, or the tokenizer fails.
        """
        limit, special = max_length or self.text.max_length, int(self.tokenizer.num_special_tokens_to_add())
        if limit <= special:
            # With such a limit the tokenizer would not truncate.
            raise InputError(
                f"the maximum length of {limit} tokens leaves no room for words: {special} are special tokens",
                (
                    f"set `max_length` to more than {special}",
                    f"set max_seq_length of the model to more than {special}",
                ),
            )
        prepared = [self._without_rest(self.text.prepare(text), limit) for text in texts]
        return token_ids(self.tokenizer, prepared, max_length=limit)

    def _without_rest(self, text: str, limit: int) -> str:
        """The beginning of a very long text, if it certainly contains all tokens that are kept; otherwise the text.

        A tokenizer processes the whole text before it truncates, at one second and 100 MB of memory per megabyte.
        """
        if len(text) <= _LONG_TEXT or self.tokenizer.truncation_side != "right":
            return text
        wanted = limit + _MARGIN
        [found] = token_ids(self.tokenizer, [text[:_LONG_TEXT]], max_length=wanted)
        return text[:_LONG_TEXT] if len(found) == wanted else text

    def states(self, input_ids: Tensor, attention_mask: Tensor, *, padded: bool = True) -> Tensor:
        """Last hidden states [B, T, H] of token ids [B, T], with token weights applied: see `weigh`."""
        (states,) = self.hidden_states(input_ids, attention_mask if padded else None, every_layer=False)
        return self.weigh(states, input_ids, attention_mask)

    def weigh(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Change the states so that their plain mean over a text is the weighted mean v: w h + (1 - w) v.

        A token of weight 0 gets the text's vector v. So the states remain a target that a student without token weights
        can reach. Without token weights, the states are returned unchanged.

        Args:
            states: [B, T, H] last hidden states.
            input_ids: [B, T].
            attention_mask: [B, T].

        Returns:
            [B, T, H].
        """
        if self.token_weights is None:
            return states
        weights = self.token_weights[input_ids].unsqueeze(-1).to(states.dtype)
        counted = weights * attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * counted).sum(dim=1, keepdim=True) / counted.sum(dim=1, keepdim=True).clamp(min=1e-9)
        return weights * states + (1 - weights) * mean

    def pooled(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """Pool the states: [B, T, H] -> [B, D_s]."""
        return torch.cat([pool(states, attention_mask, mode) for mode in self.pooling], dim=1)

    def head(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """Pooling and dense layers, without normalisation: [B, T, H] -> [B, D]."""
        return self.project(self.pooled(states, attention_mask))

    def project(self, vectors: Tensor) -> Tensor:
        """The dense layers, in order: [B, D_s] -> [B, D]."""
        for layer in self.dense:
            vectors = layer(vectors)
        return vectors

    def embed(self, input_ids: Tensor, attention_mask: Tensor, *, padded: bool = True) -> Tensor:
        """Vectors before normalisation, as used in training: [B, T] -> [B, D].

        Args:
            padded: whether any row is padded. If not, attention needs no mask and uses its fastest kernel.
        """
        return self.head(self.states(input_ids, attention_mask, padded=padded), attention_mask)

    def embed_with_states(
        self, input_ids: Tensor, attention_mask: Tensor, *, padded: bool = True
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """`embed`, and the hidden states [B, T, H] of the embedding layer and of every layer.

        The last ones are those of `states`.
        """
        *before, last = self.hidden_states(input_ids, attention_mask if padded else None, every_layer=True)
        last = self.weigh(last, input_ids, attention_mask)
        return self.head(last, attention_mask), (*before, last)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The model's vectors: [B, T] token ids and mask -> [B, D]."""
        return self._normalised(self.embed(input_ids, attention_mask))

    def infer(
        self, input_ids: Tensor, attention_mask: Tensor, *, padded: bool = True, layers: Sequence[int] = ()
    ) -> Tensor:
        """Like `forward`, with the pooled states of some layers appended to each row; for inference.

        Pooling and everything after it is float32, whatever the body computes in.

        Args:
            input_ids: [B, T].
            attention_mask: [B, T].
            padded: see `embed`.
            layers: numbers of L layers, from 1.

        Returns:
            [B, D + L D_s] float32.
        """
        mask = attention_mask if padded else None
        *before, last = self.hidden_states(input_ids, mask, every_layer=bool(layers))
        last = self.weigh(last.float(), input_ids, attention_mask)
        vectors = self._normalised(self.head(last, attention_mask))
        if not layers:
            return vectors
        states = (*before, last)
        return torch.cat([vectors, *(self.pooled(states[k].float(), attention_mask) for k in layers)], dim=1)

    def _normalised(self, vectors: Tensor) -> Tensor:
        return functional.normalize(vectors, dim=1) if self.normalize else vectors
