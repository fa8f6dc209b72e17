"""Checks for NaN and infinity: a model that contains them is neither written nor used."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sentcompress.errors import SentcompressError

Tensors = Mapping[str, Tensor] | Mapping[str, npt.NDArray[np.floating]]


def unsound(tensors: Tensors) -> str | None:
    """The first tensor with NaN or infinity, as `name (3 of 100 values)`; None if all values are finite."""
    for name, tensor in tensors.items():
        values = torch.as_tensor(tensor)
        # If the sum is finite, all values are; this takes a third of the time. The sum itself can also overflow.
        if values.sum().isfinite():
            continue
        bad = int(values.numel() - values.isfinite().sum())
        if bad:
            return f"{name} ({bad:,} of {values.numel():,} values)"
    return None


def require_sound(tensors: Tensors, what: str, hint: str) -> None:
    """Raise SentcompressError, with the name of the tensor, if a tensor of `what` has NaN or infinity."""
    if found := unsound(tensors):
        raise SentcompressError(f"{what} has NaN or infinity in the tensor {found}", hint)
