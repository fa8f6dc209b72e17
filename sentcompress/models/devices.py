"""Devices, and the number formats to use on each."""

from __future__ import annotations

import torch
from torch import Tensor

from sentcompress.commands.shared import DTYPES
from sentcompress.errors import InputError, UsageError, did_you_mean
from sentcompress.ranks.launch import local_rank

DEVICES = ("auto", "cpu", "cuda", "mps")


def pick_device(name: str = "auto") -> torch.device:
    """The device called `name`; `auto` is CUDA if available, else Apple's GPU, else the CPU.

    Under torchrun, every process of a host has a GPU of its own, as long as there are enough.

    Raises:
        UsageError: if `name` is not one of DEVICES.
        InputError: if this machine has no such device.
    """
    if name not in DEVICES:
        raise UsageError(f"no device {name!r}", did_you_mean({"gpu": "cuda"}.get(name, str(name)), DEVICES))
    present = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        name = next(kind for kind in ("cuda", "mps", "cpu") if present[kind])
    if not present[name]:
        raise InputError(f"this machine has no {name} device{_why_not(name)}", "use `device` auto or `device` cpu")
    if name == "cuda":
        # cuDNN's attention makes a plan for each new shape, which takes longer than many steps; lengths always vary.
        torch.backends.cuda.enable_cudnn_sdp(False)
    if name == "cuda" and (local := local_rank()) is not None:
        return torch.device(name, local % torch.cuda.device_count())
    return torch.device(name)


def dtype_candidates(name: str, device: torch.device) -> tuple[str, ...]:
    """The number formats to choose from; more than one if the faster one has to be measured.

    `auto` is bfloat16 on CUDA GPUs that support it. On a CPU it depends on the model and on the machine: half precision
    can be four times faster or a hundred times slower. float16 is not supported on a CPU.

    Raises:
        UsageError: if `name` is not one of DTYPES, or is float16 on a CPU.
    """
    if name not in DTYPES:
        raise UsageError(f"no dtype {name!r}", did_you_mean(str(name), DTYPES))
    if name == "float16" and device.type == "cpu":
        raise UsageError("float16 is not supported on a CPU", "use `dtype` auto, float32 or bfloat16")
    if name != "auto":
        return (name,)
    if device.type == "cuda":
        return ("bfloat16",) if torch.cuda.is_bf16_supported(including_emulation=False) else ("float32",)
    return ("float32", "bfloat16") if device.type == "cpu" else ("float32",)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on `device`; from the CPU to a CUDA device through pinned memory, so that the host does not wait."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def _why_not(name: str) -> str:
    if name == "cuda" and torch.version.cuda is None:
        return f" that torch {torch.__version__} could use (it is built without CUDA)"
    return ""
