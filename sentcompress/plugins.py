"""Plugins: methods, evaluations and export formats of other packages, declared as entry points (docs/plugins.md)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

from sentcompress.errors import InputError, SentcompressWarning

METHODS = "sentcompress.methods"
EVALUATIONS = "sentcompress.evaluations"
EXPORTERS = "sentcompress.exporters"


@dataclass(frozen=True)
class Plugin:
    """An entry point of another package.

    Attributes:
        name: the name that users type.
        place: `module` or `module:attribute`.
        package: the package and its version, such as "tiny 0.1".
    """

    name: str
    place: str
    package: str

    def load(self) -> Any:
        """The module or attribute.

        Raises:
            InputError: if the import fails for any reason.
        """
        try:
            return metadata.EntryPoint(self.name, self.place, "").load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise self._fault(f"cannot be loaded: {reason}") from error

    def unusable(self, reason: str) -> InputError:
        """The error for an attribute that is not what its group needs."""
        return self._fault(f"cannot be used: {self.place}{reason}")

    def _fault(self, what: str) -> InputError:
        return InputError(f"{self.name} of the package {self.package} {what}", f"update or remove {self.package}")


def plugins(group: str, taken: Collection[str] = ()) -> Mapping[str, Plugin]:
    """The plugins of a group by name; nothing is imported.

    A plugin whose name is in `taken` or belongs to another plugin is ignored with a warning.
    """
    found: dict[str, Plugin] = {}
    for plugin in _declared(group):
        if plugin.name in taken or plugin.name in found:
            owner = "sentcompress" if plugin.name in taken else found[plugin.name].package
            message = f"{plugin.name} of the package {plugin.package} is ignored: {owner} already has that name"
            warnings.warn(message, SentcompressWarning, stacklevel=2)
        else:
            found[plugin.name] = plugin
    return found


@cache
def _declared(group: str) -> tuple[Plugin, ...]:
    entries = sorted(metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value))
    return tuple(
        Plugin(entry.name, entry.value, f"{entry.dist.name} {entry.dist.version}" if entry.dist else "unknown")
        for entry in entries
    )
