"""Registry of the training objectives. Each has its own file: equation, hyperparameters and the source of each value.

A method sees only tensors, never a model, a file or a command. Names can be listed and checked without torch. Other
packages can add methods of `distill` (docs/plugins.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sentcompress import plugins
from sentcompress.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from sentcompress.methods.base import Method

# Import paths as text, so that names can be listed and checked without importing torch.
# The methods of `distill`:
METHODS: dict[str, str] = {
    "hpd": "sentcompress.methods.hpd:HPD",
    "mse": "sentcompress.methods.mse:MSE",
    "ckd": "sentcompress.methods.ckd:CKD",
    "ibkd": "sentcompress.methods.ibkd:IBKD",
    "simtde": "sentcompress.methods.simtde:SimTDE",
    "crd": "sentcompress.methods.crd:CRD",
    "pkd": "sentcompress.methods.pkd:PKD",
    "metakd": "sentcompress.methods.metakd:MetaKD",
    "lrn-kd": "sentcompress.methods.lrn_kd:LRNKD",
    "lmx-kd": "sentcompress.methods.lmx_kd:LMXKD",
}
# The objectives of `finetune` and `train-teacher`:
OBJECTIVES: dict[str, str] = {
    "simcse": "sentcompress.methods.simcse:SimCSE",
    "ibkd": "sentcompress.methods.ibkd:IBKDFinetune",
}
ADDED = plugins.plugins(plugins.METHODS, taken={*METHODS, *OBJECTIVES})
METHODS |= {name: plugin.place for name, plugin in ADDED.items()}

# Names that papers use, and names of commands.
OTHER_NAMES: dict[str, str] = {
    "kd": "here it is called mse",
    "distilcse": "it is ckd, followed by the finetune command",
    "whiten": "it is a command, for any model: sentcompress whiten",
    "whitening": "it is a command, for any model: sentcompress whiten",
}


def hint_for(name: str, known: Iterable[str]) -> str:
    """A suggestion for an unknown method name."""
    return OTHER_NAMES.get(name.lower()) or did_you_mean(name, known)


def method_class(name: str) -> type[Method]:
    """Return the class of a method of `distill`.

    Raises:
        UsageError: if no method has that name.
        InputError: if it is from another package and cannot be loaded, or is not a Method of `distill`.
    """
    return _added_class(ADDED[name]) if name in ADDED else _find(name, METHODS, "method")


def package_of(name: str) -> dict[str, str]:
    """For the request of a student: the package and version of a method that another package adds, which may change."""
    return {"package": ADDED[name].package} if name in ADDED else {}


def objective_class(name: str) -> type[Method]:
    """Return the class of an objective of `finetune` and `train-teacher`.

    Raises:
        UsageError: if no objective has that name.
    """
    return _find(name, OBJECTIVES, "objective")


def _find(name: str, known: dict[str, str], kind: str) -> type[Method]:
    if name not in known:
        raise UsageError(f"no {kind} {name!r}", hint_for(name, known))
    module, _, attribute = known[name].partition(":")
    return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]


def _added_class(plugin: plugins.Plugin) -> type[Method]:
    from sentcompress.methods.base import Method

    found = plugin.load()
    if not isinstance(found, type) or not issubclass(found, Method) or getattr(found, "stage", None) != "distill":
        raise plugin.unusable(" is not a Method of distill")
    return found
