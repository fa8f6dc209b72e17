"""Students that reuse their layers (weight sharing), as ALBERT checkpoints.

Layers that share their weights (Lan et al. 2020, ALBERT) make a model deeper and slower, but not larger. ALBERT has
BERT's layers under other names after a factorised token table, and every tool supports it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from sentcompress.models.families import COMMON_SETTINGS, FAMILIES

# The settings with the sizes of the tables, in addition to COMMON_SETTINGS.
TABLES = ("embedding_size", "max_position_embeddings", "type_vocab_size")


def repeated(transformer: Any, passes: int) -> nn.Module:
    """An AlbertModel that applies the layers of `transformer` in order, `passes` times.

    With one pass it computes the same as `transformer`.

    Args:
        transformer: an ElectraModel with an `embeddings_project`, as returned by `factorised`; not modified.
    """
    from transformers import AlbertConfig, AlbertModel

    config = transformer.config
    settings = {name: getattr(config, name) for name in (*COMMON_SETTINGS, *TABLES)}
    # A group is the unit that is repeated; BERT has no ids for these special tokens.
    settings |= {"num_hidden_layers": passes, "num_hidden_groups": 1, "inner_group_num": config.num_hidden_layers}
    settings |= {"bos_token_id": None, "eos_token_id": None}
    student = AlbertModel(AlbertConfig(**settings), add_pooling_layer=False)
    student.config._attn_implementation = config._attn_implementation
    layers: Any = student.encoder.albert_layer_groups[0].albert_layers
    with torch.no_grad():
        student.embeddings.load_state_dict(transformer.embeddings.state_dict())
        student.encoder.embedding_hidden_mapping_in.load_state_dict(transformer.embeddings_project.state_dict())
        for ours, theirs in zip(layers, transformer.encoder.layer, strict=True):
            names = zip(FAMILIES["electra"].layer.paths(), FAMILIES["albert"].layer.paths(), strict=True)
            for source, target in names:
                ours.get_submodule(target).load_state_dict(theirs.get_submodule(source).state_dict())
    return student.eval()  # type: ignore[no-any-return]
