"""Selects the stages of a recipe to run, and the earlier ones whose results they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sentcompress.commands import find_command
from sentcompress.commands.options import MODEL, Key, keys_of, named_models
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.corpora.documents_artifact import names_documents
from sentcompress.errors import did_you_mean
from sentcompress.models.names import KINDS, STUDENT, TEACHER
from sentcompress.recipes.plan import Step
from sentcompress.store.request import TEACHER_VECTORS

# The default in `--help` of an option that names an artifact, if no artifact is used without the option.
OFF = "none"


@dataclass(frozen=True)
class StageSelection:
    """The stages that the user asks for: by number, by command, or by the name of their result.

    Attributes:
        only: these stages; a command stands for all its stages.
        first, last: from the first stage of that name, to the last one.
    """

    only: Sequence[str] = ()
    first: str | None = None
    last: str | None = None

    def of(self, steps: Sequence[Step], faults: list[str]) -> list[Step]:
        """The stages that are asked for, in order; errors go to `faults`."""
        if self.only and (self.first or self.last):
            faults.append("give either `only`, or `first` and `last`")
        chosen = {step.number for text in self.only for step in _named(text, "only", steps, faults)}
        first = [step.number for step in _named(self.first, "first", steps, faults)] if self.first else []
        last = [step.number for step in _named(self.last, "last", steps, faults)] if self.last else []
        if first and last and first[0] > last[-1]:
            faults.append(f"`first` {self.first} comes after `last` {self.last}")
        if self.only:
            return [step for step in steps if step.number in chosen]
        return [
            step for step in steps if (not first or step.number >= first[0]) and (not last or step.number <= last[-1])
        ]


def _named(text: str, field: str, steps: Sequence[Step], faults: list[str]) -> list[Step]:
    found = [step for step in steps if text in (str(step.number), step.command, _name_of(step))]
    if not found:
        known = dict.fromkeys(name for step in steps for name in (step.command, _name_of(step)) if name)
        numbers = ", ".join(str(step.number) for step in steps)
        faults.append(f"`{field}` {text}: no such stage; {did_you_mean(text, known)}; or a number: {numbers}")
    return found


def _name_of(step: Step) -> str | None:
    name: str | None = getattr(step.params, "name", None)
    return name


def needed(chosen: Sequence[Step], steps: Sequence[Step]) -> list[Step]:
    """The other stages whose results the chosen ones use, in order; also what these were made from.

    A stage that leaves an artifact out uses the last one that an earlier stage made, so it needs them all.
    """
    wanted = {step.number for step in chosen}
    for place in reversed(range(len(steps))):
        if steps[place].number in wanted:
            wanted |= {steps[before].number for before in _used(place, steps)}
    own = {step.number for step in chosen}
    return [step for step in steps if step.number in wanted - own]


def _used(place: int, steps: Sequence[Step]) -> Iterator[int]:
    """The places of the earlier stages whose results a stage uses."""
    references = set(_references(steps[place].params))
    for before, step in enumerate(steps[:place]):
        kind, name = find_command(step.command).makes, _name_of(step)
        # A stage without a name chooses one itself, which may be the one that is meant.
        if any(kind == wanted and (own is None or name is None or own == name) for wanted, own in references):
            yield before


def _references(params: Any) -> Iterator[tuple[str, str | None]]:
    """Kind and name of the artifacts that a stage uses; the name is None where the stage uses the default."""
    for key, name in named_models(params):
        yield from _of_model(key, name)
    for key in keys_of(type(params)).values():
        value = getattr(params, key.field)
        if key.opt.names not in (None, MODEL) and (value is not None or key.opt.default not in (None, OFF)):
            yield str(key.opt.names), value
        for text in map(str, value if isinstance(value, tuple) else (value,)):
            if names_documents(text):
                yield DOCUMENTS, text.partition("/")[2]


def _of_model(key: Key, name: str | None) -> Iterator[tuple[str, str | None]]:
    if name is None:
        if key.opt.default:
            yield "students", None
        return
    kind, slash, own = name.partition("/")
    if name == TEACHER or name.startswith(f"{TEACHER}:"):
        yield TEACHER_VECTORS, None
    elif name == STUDENT:
        yield "students", None
    elif slash:
        yield kind, own
    else:
        yield from ((one, name) for one in KINDS)
