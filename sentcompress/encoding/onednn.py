"""Linear layers that use oneDNN, with weights packed once.

On x86, torch multiplies float32 matrices with MKL, which does not use the widest vector instructions of non-Intel CPUs:
on an AMD EPYC with AVX-512, MKL reaches 65 to 98 GFLOP/s per core and oneDNN, also part of torch, 150 to 226. In
bfloat16 torch uses oneDNN by itself, but packs the weights again in every call. The operators are those of torch's
own compiler (Inductor); if torch lacks them, nothing is replaced.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Input rows that the packed layout is optimised for; any number of rows works.
TYPICAL_ROWS = 2048
OPERATORS = ("_reorder_linear_weight", "_linear_pointwise")


class OneDnnLinear(nn.Module):
    """A copy of a `torch.nn.Linear` with its current weights, for inference on a CPU."""

    packed: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        # Some transformers read the weight's dtype.
        self.weight, self.bias = linear.weight, linear.bias
        with torch.no_grad():
            packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), TYPICAL_ROWS)
        self.register_buffer("packed", packed, persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., in_features] -> [..., out_features]."""
        return torch.ops.mkldnn._linear_pointwise(inputs, self.packed, self.bias, "none", [], "")  # type: ignore[no-any-return]


def onednn_is_here() -> bool:
    """Whether this torch has the operators."""
    built = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return built and all(hasattr(torch.ops.mkldnn, name) for name in OPERATORS)


def use_onednn(module: nn.Module) -> None:
    """Replace every linear layer inside `module`, in place, except subclasses of Linear."""
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, OneDnnLinear(child))
        else:
            use_onednn(child)
