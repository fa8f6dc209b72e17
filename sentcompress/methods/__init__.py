"""The methods, by name: one file each, with its equation, its recipe and the source of every number."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from sentcompress.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from sentcompress.methods.base import Method

# Text, so that names can be listed and checked without importing torch.
METHODS: dict[str, str] = {
    "hpd": "sentcompress.methods.hpd:HPD",
    "mse": "sentcompress.methods.mse:MSE",
    "ckd": "sentcompress.methods.ckd:CKD",
}


def method_class(name: str) -> type[Method]:
    """The class of a method.

    Raises:
        UsageError: if there is none of that name.
    """
    if name not in METHODS:
        raise UsageError(f"no method {name!r}", did_you_mean(name, METHODS))
    module, _, attribute = METHODS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
