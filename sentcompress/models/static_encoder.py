"""An encoder of token vectors alone: a text's vector is the mean of the vectors of its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from sentcompress.models.encoder import Encoder
from sentcompress.models.text_settings import TransformersTokenizer


def token_vectors(table: Tensor) -> nn.Embedding:
    """A table [V, H] as a module, to be trained; it is not copied."""
    return nn.Embedding.from_pretrained(table, freeze=False)  # type: ignore[no-untyped-call,no-any-return]


class StaticEncoder(Encoder):
    """tokens -> rows of a table -> mean -> dense layers -> normalisation.

    The StaticEmbedding module of sentence-transformers, and a model of model2vec. There are no layers, positions or
    special tokens. The weight of a token in the mean is the length of its vector, so no other weights are needed.

    Args:
        embedding: the token vectors, [V, H].
        tokenizer: a tokenizer that adds no special tokens, such as `static_folder.plain_tokenizer` makes.
        parts: see `Encoder`; the pooling is the mean.

    Raises:
        ValueError: for token weights or another pooling.
    """

    def __init__(self, embedding: nn.Embedding, tokenizer: TransformersTokenizer, **parts: Any) -> None:
        super().__init__(tokenizer, **parts)
        if self.pooling != ("mean",) or self.token_weights is not None:
            raise ValueError("a static encoder is the plain mean of its token vectors")
        self.embedding = embedding

    def parts(self) -> dict[str, Any]:
        return {"embedding": self.embedding, **super().parts()}

    @property
    def body(self) -> nn.Module:
        return self.embedding

    @property
    def architecture(self) -> str:
        return "static"

    @property
    def hidden_size(self) -> int:
        return self.embedding.embedding_dim

    @property
    def table_size(self) -> int:
        return self.embedding.num_embeddings

    def hidden_states(
        self, input_ids: Tensor, attention_mask: Tensor | None, *, every_layer: bool
    ) -> tuple[Tensor, ...]:
        states: Tensor = self.embedding(input_ids)
        return (states,)

    def embed(self, input_ids: Tensor, attention_mask: Tensor, *, padded: bool = True) -> Tensor:
        return self.project(self._mean(input_ids, attention_mask))

    def infer(
        self, input_ids: Tensor, attention_mask: Tensor, *, padded: bool = True, layers: Sequence[int] = ()
    ) -> Tensor:
        if layers:
            raise ValueError("a static encoder has no layers")
        return self._normalised(self.project(self._mean(input_ids, attention_mask).float()))

    def _mean(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The mean token vector of each text, without states of single tokens: [B, T] -> [B, H].

        Padding counts with weight 0. To leave it out, the host would have to wait for a GPU to count the tokens.
        """
        weights = attention_mask.to(self.embedding.weight.dtype)
        ids = input_ids * attention_mask  # a token that pads need not be in the table
        sums = functional.embedding_bag(ids, self.embedding.weight, per_sample_weights=weights, mode="sum")
        return sums / attention_mask.sum(dim=1, keepdim=True).clamp(min=1)
