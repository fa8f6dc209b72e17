"""A transformer's configuration beside its weights, before anything is built by it."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from safetensors import safe_open

from sentcompress.errors import InputError
from sentcompress.models.foreign_code import nothing_fetched
from sentcompress.models.library_errors import reading
from sentcompress.models.model_files import read_config, weight_files
from sentcompress.models.tensors import plain_tensors

# Settings of a configuration that change which weights are read, or what they mean.
UNREADABLE = {
    "quantization_config": "quantised weights cannot be read: use the float32 model",
    "transformers_weights": "rename the file to model.safetensors, and remove that key",
}
# A configuration may repeat parts that share weights, but not without end.
MOST_PARTS, LARGEST_NUMBER, MOST_LABELS = 64, 2**31, 10**6
# How many times as many numbers as the file's the architecture may have; and so many may be missing at any rate.
SPARE_FACTOR, SPARE_NUMBERS = 2, 2**24


def check_config(folder: Path, label: str, *, trusted: bool) -> None:
    """Refuse a configuration that the weights beside it cannot be of, before time and memory are taken for it.

    Args:
        folder: the transformer's own.
        label: the name to show.
        trusted: whether the model's own code may run; only without it is the architecture one that is known here.

    Raises:
        InputError: if it asks for quantised weights, or for far more than the weights fill.
    """
    config = read_config(folder)
    for key, hint in UNREADABLE.items():
        parts = (config, *(part for part in config.values() if isinstance(part, dict)))
        if any(part.get(key) for part in parts):
            raise InputError(f"{folder / 'config.json'} has a {key}", hint)
    tensors, numbers = _size_of_weights(folder, label)
    for key, value in config.items():
        most = MOST_LABELS if key == "num_labels" else LARGEST_NUMBER
        if key.endswith(("layer", "layers", "groups", "group_num", "blocks", "experts")):
            most = max(MOST_PARTS, tensors)
        if isinstance(value, int) and abs(value) > most:
            raise InputError(
                f"{folder / 'config.json'}: {key} cannot be {value}", "is it the configuration of these weights?"
            )
    if not trusted:
        _check_architecture(folder, label, SPARE_FACTOR * numbers + SPARE_NUMBERS)


def _check_architecture(folder: Path, label: str, most: int) -> None:
    from transformers import AutoConfig, AutoModel

    with nothing_fetched(), reading(f"{label} cannot be loaded"), torch.device("meta"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        model = AutoModel.from_config(config, trust_remote_code=False)
        asked = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    if asked > most:
        raise InputError(
            f"the configuration of {label} asks for {asked} numbers, far more than its weights have",
            "is it the configuration of these weights?",
        )


def _size_of_weights(folder: Path, label: str) -> tuple[int, int]:
    """How many tensors there are, and how many numbers in them."""
    tensors, numbers = 0, 0
    for path in weight_files(folder):
        if path.suffix == ".bin":
            sizes = [v.numel() for v in plain_tensors(path, "meta").values()]
        else:
            with reading(f"{label} cannot be loaded"), safe_open(path, "pt") as file:
                sizes = [math.prod(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118
        tensors, numbers = tensors + len(sizes), numbers + sum(sizes)
    return tensors, numbers
