"""An encoder that computes its token states with a transformers model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from sentcompress.errors import InputError
from sentcompress.models.encoder import Encoder
from sentcompress.models.families import (
    ENCODERS,
    FAMILIES,
    TYPED,
    key_biases,
    readable_positions,
    table_projection,
)
from sentcompress.models.text_settings import TransformersTokenizer, token_types

# Settings that the shapes of the weights do not show: ALBERT's number of passes, for example, or of attention heads.
TELLING = ("model_type", "num_attention_heads", "num_hidden_layers", "hidden_act")


class TransformerEncoder(Encoder):
    """tokens -> transformer -> (token weights) -> pooling -> dense layers -> normalisation.

    Args:
        transformer: a transformers model whose output has `last_hidden_state`.
        tokenizer: the tokenizer of that model.
        parts: see `Encoder`.
    """

    def __init__(self, transformer: nn.Module, tokenizer: TransformersTokenizer, **parts: Any) -> None:
        super().__init__(tokenizer, **parts)
        self.transformer = transformer
        for bias in key_biases(transformer):
            bias.requires_grad_(False)

    def parts(self) -> dict[str, Any]:
        return {"transformer": self.transformer, **super().parts()}

    @property
    def config(self) -> Any:
        """The configuration of the transformer."""
        return self.transformer.config

    @property
    def body(self) -> nn.Module:
        return self.transformer

    @property
    def architecture(self) -> str:
        return str(self.config.model_type)

    @property
    def hidden_size(self) -> int:
        width = getattr(self.config, "hidden_size", None)
        if not isinstance(width, int):
            raise InputError(
                f"the configuration of a {self.architecture} model does not name the width of its token states",
                "choose an encoder of text",
            )
        return width

    @property
    def depth(self) -> int:
        # ALBERT counts the passes through a group of layers, but returns the states after each of the layers.
        return int(getattr(self.config, "num_hidden_layers", 0)) * int(getattr(self.config, "inner_group_num", 1))

    @property
    def table_size(self) -> int:
        return int(self.transformer.get_input_embeddings().num_embeddings)  # type: ignore[operator]

    @property
    def max_positions(self) -> int | None:
        return readable_positions(self.transformer)

    def make(self) -> tuple[object, ...]:
        return tuple(getattr(self.config, name, None) for name in TELLING)

    def hidden_states(
        self, input_ids: Tensor, attention_mask: Tensor | None, *, every_layer: bool
    ) -> tuple[Tensor, ...]:
        asked: dict[str, Any] = {"output_hidden_states": True} if every_layer else {}
        if self._types is not None:
            types = torch.zeros_like(input_ids)
            for token, kind in self._types.items():
                types = torch.where(input_ids == token, kind, types)
            asked["token_type_ids"] = types
        output = self.transformer(input_ids=input_ids, attention_mask=self._prepared(attention_mask), **asked)
        if not every_layer:
            return (output.last_hidden_state,)
        states = getattr(output, "hidden_states", None)
        if states is None:  # of TAPAS, and of BART, which has those of its encoder and of its decoder
            raise InputError(
                f"a {self.architecture} model does not return the states of its layers",
                "choose a method that needs none, or a model of another architecture",
            )
        return (*states[:-1], output.last_hidden_state)

    @cached_property
    def _types(self) -> dict[int, int] | None:
        """The tokens whose type is not 0, if the architecture and the tokenizer have types."""
        found = token_types(self.tokenizer, "a") if self.architecture in TYPED else None
        return None if found is None else {token: kind for token, kind in found.items() if kind}

    def _prepared(self, mask: Tensor | None) -> Tensor | None:
        """A mask [B, T] in the form that attention uses, [B, 1, 1, T], for architectures that take it.

        For sdpa, it is true for tokens; for eager attention, it is 0 for tokens and the smallest number for padding.

        From a mask [B, T], transformers would first find out whether any token is masked, for which the host waits for
        a GPU; in an exported graph, it would build a mask [B, 1, T, T] with 15 more nodes. Architectures outside
        FAMILIES may have layers with masks of their own, which they make from [B, T].
        """
        if mask is None or self.architecture not in FAMILIES:
            return mask
        real = mask.bool()[:, None, None, :]
        match self.config._attn_implementation:
            case "sdpa":
                return real
            case "eager" if self.architecture != "mpnet":  # not all releases of transformers take another mask there
                dtype: torch.dtype = self.transformer.dtype  # type: ignore[assignment]
                kept = torch.zeros((), dtype=dtype, device=mask.device)
                return torch.where(real, kept, torch.finfo(dtype).min)
        return mask

    def token_embeddings(self, input_ids: Tensor) -> Tensor:
        transformer: Any = self.transformer
        if self.architecture in ENCODERS:
            # T5's positions are relative: its first states are the rows of the token table.
            return torch.as_tensor(transformer.get_input_embeddings()(input_ids))
        embeddings = getattr(transformer, "embeddings", None)
        if embeddings is None or isinstance(embeddings, nn.Embedding):
            # XLM and GPT-2 add positions to the rows of the table outside of any module.
            return super().token_embeddings(input_ids)
        found: Tensor = embeddings(input_ids=input_ids)
        project = table_projection(transformer)
        return found if project is None else torch.as_tensor(project(found))

    @contextmanager
    def plain_attention(self) -> Iterator[None]:
        # Not `set_attn_implementation`, which walks all modules: this runs in every training step.
        before = self.config._attn_implementation
        self.config._attn_implementation = "eager"
        try:
            yield
        finally:
            self.config._attn_implementation = before
