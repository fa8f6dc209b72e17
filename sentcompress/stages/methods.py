"""Describe the training methods: requirements, hyperparameters and their sources."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sentcompress.commands.methods import Params
from sentcompress.errors import UsageError
from sentcompress.methods import METHODS, OBJECTIVES, hint_for, method_class, objective_class
from sentcompress.progress import LOGGED, Reporter
from sentcompress.store import WorkDirectory

if TYPE_CHECKING:
    from sentcompress.methods.base import Method


@dataclass(frozen=True)
class Requirement:
    """A requirement of a method in words, and the command that provides it (None if no command is needed)."""

    what: str
    command: str | None = None


REQUIREMENTS: Mapping[str, Requirement] = {
    "triplets": Requirement("anchors with a positive and hard negatives", "augment or mine-negatives"),
    "teacher": Requirement("the teacher's sentence vectors, cached", "teacher-embed"),
    "pca": Requirement("a projection of the teacher's vectors", "fit-pca"),
    "inputs": Requirement("hidden states of the student itself, available during training"),
    "tokens": Requirement("the teacher's token embeddings, read from the teacher's checkpoint during training"),
    "teacher-layers": Requirement("pooled states of chosen teacher layers, cached", "teacher-embed --layers"),
    "states": Requirement("hidden states of the teacher, which runs during training"),
    "last-layers": Requirement("hidden states of the teacher's last layers, which runs during training"),
    "last-states": Requirement("last hidden states of the teacher, which runs during training"),
    "domains": Requirement("the domain of each sentence (by default one domain for all)", "augment --domain COLUMN"),
}


def run(params: Params, work: WorkDirectory, reporter: Reporter = LOGGED) -> list[dict[str, Any]]:
    """Descriptions of the requested methods, or of all; two for a name that both `distill` and `finetune` have.

    Raises:
        UsageError: if there is no method of that name.
    """
    params.check()
    found = [(name, method_class(name)) for name in METHODS if params.method in (None, name)]
    found += [(name, objective_class(name)) for name in OBJECTIVES if params.method in (None, name)]
    if not found:
        raise UsageError(f"no method {params.method!r}", hint_for(str(params.method), {**METHODS, **OBJECTIVES}))
    return [_describe(name, method) for name, method in found]


def _describe(name: str, method: type[Method]) -> dict[str, Any]:
    return {
        "name": name,
        "stage": method.stage,
        "title": method.title,
        "paper": method.paper,
        "link": method.link,
        "equation": method.equation,
        "needs": {need: dict(vars(REQUIREMENTS[need])) for need in sorted(method.needs, key=list(REQUIREMENTS).index)},
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
