"""What methods there are, what each needs, and where every number of its recipe is from."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from sentcompress.methods import METHODS, method_class
from sentcompress.progress import SILENT, Reporter

# Where what a method needs comes from.
SOURCES = {"teacher": "teacher-embed", "pca": "fit-pca"}


@dataclass(frozen=True)
class Params:
    """One method, or all of them."""

    method: str | None = None


def run(params: Params, reporter: Reporter = SILENT) -> list[dict[str, Any]]:
    """A description of each method asked for.

    Raises:
        UsageError: if there is no method of that name.
    """
    return [_describe(name) for name in ([params.method] if params.method else METHODS)]


def _describe(name: str) -> dict[str, Any]:
    method = method_class(name)
    return {
        "name": name,
        "title": method.title,
        "paper": method.paper,
        "link": method.link,
        "equation": method.equation,
        "needs": {need: SOURCES[need] for need in sorted(method.needs, reverse=True)},
        "deployed": method.deployed,
        "description": inspect.cleandoc(method.__doc__ or ""),
        "recipe": method.recipe.as_dict(),
        "options": {
            option: {
                "type": known.kind,
                "default": known.default,
                "help": known.help,
                "source": known.source,
            }
            for option, known in method.options.items()
        },
    }
