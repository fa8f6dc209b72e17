"""Checks of a transformer's configuration against its weights, before the model is built."""

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

# Configuration keys that change which weights are read, or how.
UNREADABLE = {
    "quantization_config": "quantised weights cannot be read; use the float32 model",
    "transformers_weights": "rename the file to model.safetensors and remove that key",
}
# A configuration can repeat parts that share weights; these are upper limits.
MOST_PARTS, LARGEST_NUMBER, MOST_LABELS = 64, 2**31, 10**6
# The architecture can have SPARE_FACTOR times the parameters in the weight files, plus SPARE_NUMBERS.
SPARE_FACTOR, SPARE_NUMBERS = 2, 2**24


def check_config(folder: Path, label: str, *, trusted: bool) -> None:
    """Refuse a configuration that cannot belong to the weights, before building the model takes time and memory.

    Args:
        folder: the folder of the transformer.
        label: the name to show.
        trusted: whether the model may run its own code; its architecture cannot be checked then.

    Raises:
        InputError: if it asks for quantised weights, or for far more parameters than the weight files have.
    """
    config = read_config(folder)
    for key, hint in UNREADABLE.items():
        parts = (config, *(part for part in config.values() if isinstance(part, dict)))
        if any(part.get(key) for part in parts):
            raise InputError(f"{folder / 'config.json'} has the key {key}", hint)
    tensors, numbers = _size_of_weights(folder, label)
    for key, value in config.items():
        most = MOST_LABELS if key == "num_labels" else LARGEST_NUMBER
        if key.endswith(("layer", "layers", "groups", "group_num", "blocks", "experts")):
            most = max(MOST_PARTS, tensors)
        if isinstance(value, int) and abs(value) > most:
            raise InputError(
                f"{folder / 'config.json'}: {key} cannot be {value}", "does the configuration belong to these weights?"
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
            f"the configuration of {label} asks for {asked} parameters, far more than its weight files have",
            "does the configuration belong to these weights?",
        )


def _size_of_weights(folder: Path, label: str) -> tuple[int, int]:
    """The number of tensors, and of parameters, in the weight files."""
    tensors, numbers = 0, 0
    for path in weight_files(folder):
        if path.suffix == ".bin":
            sizes = [v.numel() for v in plain_tensors(path, "meta").values()]
        else:
            with reading(f"{label} cannot be loaded"), safe_open(path, "pt") as file:
                sizes = [math.prod(file.get_slice(name).get_shape()) for name in file.keys()]  # noqa: SIM118
        tensors, numbers = tensors + len(sizes), numbers + sum(sizes)
    return tensors, numbers
