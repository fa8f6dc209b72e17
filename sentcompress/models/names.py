"""Resolves names of models: one rule for every option and every recipe.

In this order, a name is

- an artifact of the work directory: `NAME` of a student or an export, `students/NAME`, `exports/NAME`, or
  `teacher-vectors/NAME`, which is the teacher that made those vectors;
- `teacher`, the one that made the newest vectors; `student`, the newest; `embedded`; a published student such as
  `general-9m`; a preset such as `tinybert`;
- a model folder: a path that exists, or whatever can only be a path;
- a model of the hub: `owner/name`, a well-known name without an owner such as `roberta-large`, or `hub:NAME`.

Nothing else is a model. A plain word is not looked up on the hub, because it is more often a typing mistake than one of
the hub's few names without an owner. Does not import torch, because recipes are checked before anything runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sentcompress.errors import InputError, did_you_mean
from sentcompress.models.sources import EMBEDDED, HUB_NAME, HUB_PREFIX, comes_along
from sentcompress.published import PUBLISHED
from sentcompress.store import WorkDirectory
from sentcompress.store.request import KINDS as ARTIFACTS
from sentcompress.store.request import TEACHER_VECTORS

TEACHER = "teacher"
STUDENT = "student"
# The kinds of artifacts that are models, in the order in which a name is looked up.
KINDS = ("students", "exports")
# The students of the papers.
PRESETS = {
    "tinybert": "nreimers/TinyBERT_L-4_H-312_v2",
    "tinybert-huawei": "huawei-noah/TinyBERT_General_4L_312D",
    "tinybert6": "huawei-noah/TinyBERT_General_6L_768D",
    "minilm": "nreimers/MiniLM-L6-H384-uncased",
    "bert-base": "bert-base-uncased",
}
# The names without an owner that the hub has from its first years; there are no new ones.
_OWNERLESS = re.compile(
    r"(albert|xlnet)-(base|large|xlarge|xxlarge)-\w+|bert-(base|large)-[\w-]+|camembert-base|distilbert-base-[\w-]+"
    r"|distilroberta-base|roberta-(base|large)(-[\w-]+)?|xlm-roberta-(base|large)(-[\w-]+)?|xlm-(clm|mlm)-[\w-]+"
)
_LAYERS = f"{TEACHER}:"


@dataclass(frozen=True)
class Meaning:
    """What a name stands for.

    Attributes:
        kind: `artifact`, `teacher` (of the newest vectors), `student` (the newest), or `source`.
        name: for an artifact, its reference, such as `students/small`; for a source, the argument of `sources.locate`:
            `embedded`, a published student, a path or the name of a hub model.
    """

    kind: Literal["artifact", "teacher", "student", "source"]
    name: str

    @property
    def is_of_hub(self) -> bool:
        """Whether it is a model of the hub, unless it is a path that does not exist."""
        return self.kind == "source" and not comes_along(self.name) and not os.path.exists(self.name)


def refuse_revision(revision: str | None, name: str) -> None:
    """Refuse a revision of a model that is not one of the hub.

    Raises:
        InputError: if there is a revision.
    """
    if revision is not None:
        raise InputError(f"`revision` {revision}: {name} is not a model of the hub", "leave out `revision`")


def is_of_work(reference: str) -> bool:
    """Whether a reference or place of a model is that of an artifact, `students/NAME` or `exports/NAME`."""
    return reference.partition("/")[0] in KINDS


def meaning_in(work: WorkDirectory, name: str) -> Meaning | None:
    """The meaning of a name in a work directory, see `meaning_of`.

    Raises:
        DamagedError: if it is the name of an artifact that cannot be read.
    """
    return meaning_of(name, lambda kind, own: work.find(kind, own) is not None)


def meaning_of(name: str, exists: Callable[[str, str], bool]) -> Meaning | None:
    """The meaning of a name; None if no model has it.

    Args:
        exists: whether there is an artifact of that kind and name.
    """
    kind, slash, own = name.partition("/")
    if slash and kind in (*KINDS, TEACHER_VECTORS) and exists(kind, own):
        return Meaning("artifact", name)
    for kind_of_model in KINDS:
        if not slash and exists(kind_of_model, name):
            return Meaning("artifact", f"{kind_of_model}/{name}")
    if name == TEACHER:
        return Meaning("teacher", name)
    if name == STUDENT:
        return Meaning("student", name)
    if comes_along(name) or name in PRESETS:
        return Meaning("source", PRESETS.get(name, name))
    # Unlike Path.exists, this is false for a name that is too long for a file.
    if os.path.exists(name) or name.startswith((".", "/", "~")):
        return Meaning("source", name)
    if name.startswith(HUB_PREFIX):
        return _of_hub(name.removeprefix(HUB_PREFIX))
    if slash and kind in ARTIFACTS:
        return None
    return Meaning("source", name) if slash or is_hub_name(name) else None


def _of_hub(name: str) -> Meaning | None:
    """A hub model in its shortest spelling, so that it has one reference."""
    if not HUB_NAME.fullmatch(name):
        return None
    owner, slash, _ = name.partition("/")
    # Without the prefix, an owner called `students` would name a student.
    is_short = owner not in ARTIFACTS if slash else is_hub_name(name)
    return Meaning("source", name if is_short else f"{HUB_PREFIX}{name}")


def is_hub_name(name: str) -> bool:
    """Whether a name without an owner is that of a well-known hub model."""
    return _OWNERLESS.fullmatch(name) is not None


def is_teacher_layers(name: str) -> bool:
    """Whether a name has the form `teacher:K`: the teacher's last layers, from which `distill` can start."""
    return name.startswith(_LAYERS)


def no_such_model(name: str, place: Path, known: Sequence[str], *, layers: bool = False) -> InputError:
    """The error for a name that no model has.

    Args:
        place: the work directory.
        known: the names of its models.
        layers: whether `teacher:K` can be given too.
    """
    if is_teacher_layers(name):
        return InputError(
            f"{name} is a starting point for distill, not a model", "name a model, such as teacher or a student"
        )
    plain = re.fullmatch(r"[\w.-]+", name) is not None
    others = "owner/name" + (f" or {HUB_PREFIX}{name}" if plain else "")
    hub = f"a model of the hub is named {others}"
    words = [TEACHER, STUDENT, EMBEDDED, *PUBLISHED, *PRESETS, *([f"{_LAYERS}3"] if layers else [])]
    kind, _, own = name.rpartition("/")
    close = did_you_mean(own, known if kind else [one for one in (*known, *words) if one != name])
    if not close.startswith("did you mean"):
        close = f"it has {', '.join(sorted(set(known)))}" if known else "it has no models yet"
        close += f"; you can also give {', '.join(words)}, or a folder"
    return InputError(f"no model named {name!r} in {place}", f"{close} ({hub})")
