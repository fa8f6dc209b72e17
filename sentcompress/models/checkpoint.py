"""Reading a transformer's own files: weights, configuration, tokenizer; and what can be wrong with them."""

from __future__ import annotations

import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from sentcompress.errors import InputError
from sentcompress.models.encoder import Dense
from sentcompress.models.sources import weight_files

VOCABULARY_FILES = ("tokenizer.json", "vocab.*", "*.model", "bpe.codes", "tokenizer*.py")


def load_transformer(folder: Path, label: str, trust_remote_code: bool) -> tuple[Any, Any, Dense | None]:
    """A transformer in float32, its tokenizer, and the trained head of a SimCSE checkpoint if there is one.

    Raises:
        InputError: if the files are damaged, belong to another architecture, or would run code.
    """
    from transformers import AutoModel, AutoTokenizer

    hush_transformers()
    _check_bin_weights(folder)
    _check_vocabulary(folder, label)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        model, report = AutoModel.from_pretrained(
            folder, dtype=torch.float32, trust_remote_code=trust_remote_code, output_loading_info=True
        )
    except SafetensorError as error:
        raise InputError(
            f"the weights of {label} are damaged: {first_line(error)}", "was the download or the copy complete?"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError, pickle.UnpicklingError) as error:
        raise InputError(f"{label} cannot be loaded: {first_line(error)}") from None
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


def _check_bin_weights(folder: Path) -> None:
    """Pickled weights run code when they are opened, unless opened as plain tensors; refuse anything more."""
    for path in weight_files(folder):
        if path.suffix == ".bin":
            try:
                torch.load(path, map_location="meta", weights_only=True)
            except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
                raise InputError(
                    f"{path} is not a file of plain tensors: {first_line(error)}",
                    "it was not opened, since it could run code; convert it to safetensors where you trust it",
                ) from None


def _check_vocabulary(folder: Path, label: str) -> None:
    """Without a vocabulary transformers makes up an empty one, in which every word is unknown."""
    if not any(path.is_file() for pattern in VOCABULARY_FILES for path in folder.glob(pattern)):
        raise InputError(
            f"the model folder of {label} has no tokenizer",
            "it needs tokenizer.json, or the vocabulary in a file of its own",
        )


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


def read_json(path: Path) -> Any:
    """A JSON file of a model folder; InputError if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} is missing", "is the model folder complete?") from None
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None


def module_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of one module of a model folder; InputError if they are missing or damaged."""
    safetensors, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    try:
        if safetensors.is_file():
            return load_file(safetensors)
        return dict(torch.load(pickled, map_location="cpu", weights_only=True))
    except (OSError, RuntimeError, EOFError, SafetensorError, pickle.UnpicklingError) as error:
        raise InputError(f"the weights of {folder} cannot be read: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    """The first line of an error of another library, cut to a length that a terminal can show."""
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
