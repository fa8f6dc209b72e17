"""The transformer architectures that students can be cut from, and the paths of their modules.

Models of other architectures can be used for encoding, trained and exported, but their layers and tables cannot be cut.
Of the encoder-decoders in ENCODERS, only the encoder is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from sentcompress.errors import InputError


@dataclass(frozen=True)
class Layer:
    """The modules of one layer, by their paths inside it."""

    query: str
    key: str
    value: str
    attention_output: str
    attention_norm: str
    feed_forward_in: str
    feed_forward_out: str
    norm: str

    def paths(self) -> tuple[str, ...]:
        """All paths, in the same order for every architecture."""
        return tuple(vars(self).values())


@dataclass(frozen=True)
class Family:
    """The structure of an architecture; all have their token table in `embeddings`.

    Attributes:
        layer: the modules of a layer.
        layers: the path of the list of layers; None if single layers cannot be removed.
        layer_count: the setting with the number of layers.
        neurons: the setting with the number of neurons of a feed-forward network.
        projection: the path of the linear map from a narrow token table to the hidden width, if a model has one.
        factorisable: whether its layers compute the same as ELECTRA's: post-norm, learnt absolute positions. Only then
            can the token table be factorised, and layers be reused (as an ALBERT model).
    """

    layer: Layer
    layers: str | None = "encoder.layer"
    layer_count: str = "num_hidden_layers"
    neurons: str = "intermediate_size"
    projection: str = "embeddings_project"
    factorisable: bool = False


_BERT = Layer(
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attention_output="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    feed_forward_in="intermediate.dense",
    feed_forward_out="output.dense",
    norm="output.LayerNorm",
)
_MPNET = Layer(
    query="attention.attn.q",
    key="attention.attn.k",
    value="attention.attn.v",
    attention_output="attention.attn.o",
    attention_norm="attention.LayerNorm",
    feed_forward_in="intermediate.dense",
    feed_forward_out="output.dense",
    norm="output.LayerNorm",
)
_DISTILBERT = Layer(
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attention_output="attention.out_lin",
    attention_norm="sa_layer_norm",
    feed_forward_in="ffn.lin1",
    feed_forward_out="ffn.lin2",
    norm="output_layer_norm",
)
_ALBERT = Layer(
    query="attention.query",
    key="attention.key",
    value="attention.value",
    attention_output="attention.dense",
    attention_norm="attention.LayerNorm",
    feed_forward_in="ffn",
    feed_forward_out="ffn_output",
    norm="full_layer_layer_norm",
)
# By the `model_type` of a configuration.
FAMILIES = {
    "bert": Family(_BERT, factorisable=True),
    "roberta": Family(_BERT, factorisable=True),
    "xlm-roberta": Family(_BERT, factorisable=True),
    "camembert": Family(_BERT),
    "electra": Family(_BERT, factorisable=True),
    "mpnet": Family(_MPNET),
    "distilbert": Family(_DISTILBERT, "transformer.layer", "n_layers", "hidden_dim"),
    "albert": Family(_ALBERT, None, projection="encoder.embedding_hidden_mapping_in"),
}
# Encoder-decoders whose encoder alone computes the token states, by `model_type`: transformers' class for the encoder.
ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}
# The number of positions that XLNet's configuration gives.
NO_LIMIT = -1
# The settings that BERT, RoBERTa, ELECTRA and ALBERT have in common, besides the widths and lengths of their tables.
COMMON_SETTINGS = (
    *("vocab_size", "hidden_size", "num_attention_heads", "intermediate_size", "hidden_act", "layer_norm_eps"),
    *("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range", "pad_token_id"),
)


# Outside of FAMILIES: architectures whose states differ without token types, even if all of them are 0.
TYPED = ("xlm", "flaubert", "gpt2", "xlnet", "funnel")
WITH_LAYERS = tuple(name for name, family in FAMILIES.items() if family.layers)
FACTORISABLE = tuple(name for name, family in FAMILIES.items() if family.factorisable)


def find_family(config: Any, names: Sequence[str], refusal: str, option: str) -> Family:
    """The structure of a model's architecture.

    Args:
        config: the model's configuration.
        names: the supported architectures, such as FACTORISABLE.
        refusal: the first half of the error for other architectures.
        option: the option that requires one of them.

    Raises:
        InputError: if it has another architecture.
    """
    if config.model_type not in names:
        raise InputError(
            f"{refusal}: its architecture is {config.model_type!r}", f"{option} works with {', '.join(names)}"
        )
    return FAMILIES[config.model_type]


def table_projection(transformer: Any) -> Any:
    """The linear map from a narrow token table to the hidden width; None if the widths are equal."""
    family = FAMILIES.get(transformer.config.model_type, FAMILIES["electra"])
    try:
        return transformer.get_submodule(family.projection)
    except AttributeError:
        return None


def key_biases(transformer: Any) -> list[nn.Parameter]:
    """The biases of the attention keys, which no vector depends on; none for other architectures.

    A bias adds the same number to all inputs of a softmax, which does not change. Its computed gradient is the rounding
    error of 0; Adam would make steps of it.
    """
    family = FAMILIES.get(str(getattr(transformer.config, "model_type", "")))
    if family is None:
        return []
    keys = [module for path, module in transformer.named_modules() if path.endswith(f".{family.layer.key}")]
    return [key.bias for key in keys if key.bias is not None]


def first_position(table: nn.Embedding) -> int:
    """The row of the first token in a position table.

    RoBERTa and its relatives (XLM-R, CamemBERT, MPNet) reserve the rows up to `padding_idx` for padding.
    """
    return 0 if table.padding_idx is None else table.padding_idx + 1


def readable_positions(transformer: Any) -> int | None:
    """The number of tokens in the position table, or in the configuration if there is no such table."""
    table = getattr(getattr(transformer, "embeddings", None), "position_embeddings", None)
    if isinstance(table, nn.Embedding):
        return table.num_embeddings - first_position(table)
    found = getattr(transformer.config, "max_position_embeddings", None)
    return None if found == NO_LIMIT else found
