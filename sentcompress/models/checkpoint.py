"""Reading a transformer's own files: weights, configuration, tokenizer; and what can be wrong with them."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn

from sentcompress.documents import read_json
from sentcompress.errors import InputError
from sentcompress.models.configuration import check_config
from sentcompress.models.encoder import Dense
from sentcompress.models.foreign_code import nothing_fetched
from sentcompress.models.library_errors import reading
from sentcompress.models.model_files import DAMAGED, check_inside

VOCABULARY_FILES = ("tokenizer.json", "vocab.*", "*.model", "bpe.codes", "tokenizer*.py")
# Tokenizer settings that name a vocabulary file; used if there is no tokenizer.json.
NAMED_FILES = ("vocab_file", "merges_file", "gguf_file")


def load_transformer(folder: Path, label: str, trust_remote_code: bool) -> tuple[Any, Any, Dense | None]:
    """A transformer in float32, its tokenizer, and the trained head of a SimCSE checkpoint if there is one.

    Raises:
        InputError: if the files are damaged, belong to another architecture, or would run code.
    """
    from transformers import AutoModel, AutoTokenizer

    hush_transformers()
    _check_vocabulary(folder, label)
    check_config(folder, label, trusted=trust_remote_code)
    # Trusted code may be fetched from another repository on the hub.
    fetching = nullcontext() if trust_remote_code else nothing_fetched()
    with fetching, reading(f"{label} cannot be loaded"):
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        model, report = AutoModel.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=trust_remote_code, output_loading_info=True
        )
    missing = [key for key in report["missing_keys"] if not key.startswith("pooler.") and "position_ids" not in key]
    if missing:
        raise InputError(
            f"the weights of {label} lack {len(missing)} tensors of its architecture, {sorted(missing)[0]} among them",
            "is it a checkpoint of another model, or a damaged download?",
        )
    return model, tokenizer, _take_pooler(model, report)


def hush_transformers() -> None:
    """No bars and load reports of its own; what matters of them is checked here."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _check_vocabulary(folder: Path, label: str) -> None:
    """Without a vocabulary transformers makes up an empty one, in which every word is unknown."""
    if not any(path.is_file() for pattern in VOCABULARY_FILES for path in folder.glob(pattern)):
        raise InputError(
            f"the model folder of {label} has no tokenizer",
            "it needs tokenizer.json, or the vocabulary in a file of its own",
        )
    path = folder / "tokenizer_config.json"
    settings = read_json(path) if path.exists() else {}
    if not isinstance(settings, dict):
        raise InputError(f"{path} is not a tokenizer configuration", DAMAGED)
    versions = settings.get("fast_tokenizer_files")
    named = list(versions) if isinstance(versions, list) else []
    if not (folder / "tokenizer.json").is_file():
        named += [settings.get(key) for key in NAMED_FILES]
    for name in named:
        # Often a path on the machine where the model was made, which does not exist here.
        for other in (Path(name), folder / name) if isinstance(name, str) and "\0" not in name else ():
            if other.is_file():
                check_inside(other, folder)


def _take_pooler(model: Any, report: dict[str, Any]) -> Dense | None:
    """Detach BERT's pooler, which no sentence vector uses but SimCSE's: there it is the trained head."""
    pooler = getattr(model, "pooler", None)
    layer = getattr(pooler, "dense", pooler)  # ALBERT's is the layer itself
    if not isinstance(layer, nn.Linear):
        return None
    head = None
    if not any(key.startswith("pooler.") for key in report["missing_keys"]):
        head = Dense(layer.in_features, layer.out_features, activation="Tanh")
        head.linear.load_state_dict(layer.state_dict())
    model.pooler = None
    return head


def left_out_pooler(transformer: nn.Module) -> bool:
    """Whether the architecture would have a pooler, made up at random by whoever loads it, and this model has none."""
    optional = "add_pooling_layer" in inspect.signature(type(transformer).__init__).parameters
    return optional and getattr(transformer, "pooler", None) is None
