"""Finds the calls after which the host would wait for a CUDA device, on tensors of any device.

A step that asks no tensor for a value lets the host queue the work of the next steps while the device computes. On a
CPU nobody waits, but the same calls are made, so they can be counted without a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Operations whose result, or its size, has to reach the host.
WAITING = {
    *("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "equal"),
    *("repeat_interleave", "bincount"),
}
# Indexing waits if an index is a mask.
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
# Functions that hand the values to the host, or copy Python numbers to the device from memory that is not pinned.
COPYING = {
    torch.Tensor.cpu: "cpu",
    torch.Tensor.numpy: "numpy",
    torch.Tensor.tolist: "tolist",
    torch.tensor: "tensor",
    torch.as_tensor: "tensor",
}


class HostWaits:
    """Counts such calls of the current thread, backward passes included, while the context is entered.

    Attributes:
        counts: calls by name.
        on_wait: called with the name of each.
    """

    def __init__(self, on_wait: Callable[[str], object] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.on_wait = on_wait
        self._modes = (_Operations(self.note), _Functions(self.note))

    def note(self, name: str) -> None:
        """Count a call."""
        self.counts[name] += 1
        if self.on_wait:
            self.on_wait(name)

    def __enter__(self) -> Self:
        for mode in self._modes:
            mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*error)  # type: ignore[no-untyped-call]


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._note = note

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if name in WAITING or (name in INDEXING and any(map(_is_mask, args[1]))):
            self._note(name)
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in COPYING:
            self._note(COPYING[func])
        return func(*args, **(kwargs or {}))


def _is_mask(index: object) -> bool:
    return isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
