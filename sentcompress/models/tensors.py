"""Reading tensors from the weight files of a model folder."""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from sentcompress.errors import InputError
from sentcompress.models.library_errors import first_line, reading
from sentcompress.models.model_files import DAMAGED, weight_files


def module_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of one module of a model, as float32.

    Raises:
        InputError: if they are missing or damaged, or are not all floating-point.
    """
    files = weight_files(folder)
    if not files:
        raise InputError(
            f"the weights of {folder} cannot be read: there are none",
            "it needs model.safetensors (or pytorch_model.bin): copy or download it again",
        )
    tensors: dict[str, Tensor] = {}
    for path in files:
        with reading(f"the weights of {folder} cannot be read"):
            tensors |= read_tensors(path)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise InputError(
                f"the weights of {folder} cannot be read: {name} is {tensor.dtype}, not floating-point", DAMAGED
            )
    return {name: tensor.float() for name, tensor in tensors.items()}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a weight file, safetensors or pickled, in their own number formats.

    Raises:
        InputError: see `plain_tensors`.
    """
    return plain_tensors(path) if path.suffix == ".bin" else load_file(path)


def plain_tensors(path: Path, device: str = "cpu") -> dict[str, Tensor]:
    """The tensors of a pickled file, opened as plain tensors only, because anything else could run code.

    Raises:
        InputError: if it contains anything else.
    """
    try:
        found = dict(torch.load(path, map_location=device, weights_only=True))
        others = [name for name, tensor in found.items() if not isinstance(tensor, Tensor)]
        reason = f"{others[0]} is not a tensor" if others else None
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError, TypeError, LookupError) as error:
        reason = first_line(error)
    if reason:
        raise InputError(
            f"{path} is not a file of plain tensors: {reason}",
            "it was not opened, because it could run code; if you trust it, convert it to safetensors",
        )
    return found
