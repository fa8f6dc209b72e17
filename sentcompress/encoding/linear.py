"""Linear layers through oneDNN, with weights laid out for it once.

torch multiplies float32 matrices on x86 with MKL, which on CPUs of other makers than Intel leaves their widest
vector instructions unused: on an AMD EPYC with AVX-512, MKL reaches 65 to 98 GFLOP/s a core and oneDNN, which torch
contains as well, 150 to 226. In bfloat16 torch takes oneDNN by itself, but lays the weights out anew in every call.
The operators are those that torch's own compiler (Inductor) calls; where torch lacks them, nothing is replaced.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Rows of the input that the layout of the weights is chosen for; other numbers of rows work as well.
TYPICAL_ROWS = 2048
OPERATORS = ("_reorder_linear_weight", "_linear_pointwise")


class OneDnnLinear(nn.Module):
    """The same map as a `torch.nn.Linear`, whose weights at this moment it keeps; for inference on a CPU."""

    packed: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        # Some transformers look at the weight's dtype, so it stays within reach.
        self.weight, self.bias = linear.weight, linear.bias
        with torch.no_grad():
            packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), TYPICAL_ROWS)
        self.register_buffer("packed", packed, persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., in_features] -> [..., out_features]."""
        return torch.ops.mkldnn._linear_pointwise(inputs, self.packed, self.bias, "none", [], "")  # type: ignore[no-any-return]


def onednn_is_here() -> bool:
    """Whether this torch offers the operators."""
    built = bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
    return built and all(hasattr(torch.ops.mkldnn, name) for name in OPERATORS)


def use_onednn(module: nn.Module) -> None:
    """Replace every plain linear layer inside `module`, in place. Subclasses of Linear are left alone."""
    for name, child in module.named_children():
        if type(child) is nn.Linear:
            setattr(module, name, OneDnnLinear(child))
        else:
            use_onednn(child)
