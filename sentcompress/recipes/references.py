"""Checks that the artifacts and models that a recipe refers to exist or are made by an earlier stage."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentcompress.commands import Command
from sentcompress.commands.options import MODEL, Key, keys_of
from sentcompress.commands.shared import NEWEST_STUDENT
from sentcompress.corpora.documents_artifact import KIND as DOCUMENTS
from sentcompress.corpora.documents_artifact import names_documents
from sentcompress.errors import did_you_mean
from sentcompress.models.names import KINDS, PRESETS, STUDENT, TEACHER, is_teacher_layers, meaning_of
from sentcompress.models.sources import EMBEDDED, HUB_PREFIX
from sentcompress.published import PUBLISHED
from sentcompress.recipes.document import Recipe, Stage
from sentcompress.recipes.placeholders import FromUser, placeholders
from sentcompress.store.request import EVALUATIONS, TEACHER_VECTORS

# In the name of a file of vectors, which evaluations take in place of a model.
VECTORS = ".npy"
# Similarity from which a model's name counts as a mistyped name of an earlier stage; `minilm` is less similar to
# `mse-minilm`.
ALIKE = 0.85
# Only the user can set this option.
TRUST = "trust-remote-code"


@dataclass(frozen=True)
class Known:
    """What a recipe may refer to.

    Attributes:
        commands: the commands allowed as stages, by name.
        exists: whether the work directory has an artifact of that kind and name; with None, any of that kind.
    """

    commands: Mapping[str, Command]
    exists: Callable[[str, str | None], bool]

    def keys(self, command: str) -> Mapping[str, Key]:
        """The options of a command; empty for an unknown command."""
        return keys_of(self.commands[command].params) if command in self.commands else {}

    def makes(self, command: str) -> str | None:
        """The kind of artifact that a command writes."""
        return self.commands[command].makes if command in self.commands else None

    def makers(self, kind: str) -> set[str]:
        """The commands that write artifacts of a kind."""
        return {name for name, command in self.commands.items() if command.makes == kind}


def faults_of_references(stages: Sequence[Stage], known: Known) -> list[str]:
    """Errors in what the stages refer to: code, artifacts, models, and two results of one name."""
    return [
        *_faults_of_trust(stages),
        *_faults_of_artifacts(stages, known),
        *_faults_of_models(stages, known),
        *_faults_of_names(stages, known),
    ]


def _faults_of_trust(stages: Sequence[Stage]) -> list[str]:
    """Errors for recipes that set TRUST: a recipe may come from a stranger, so only the user can allow code."""
    return [
        f"{stage.label}: a recipe cannot set {TRUST}; read the model's code, then use --set all.{TRUST}=true"
        for stage in stages
        if not isinstance(stage.values.get(TRUST, False), FromUser) and stage.values.get(TRUST, False) is not False
    ]


def _faults_of_artifacts(stages: Sequence[Stage], known: Known) -> list[str]:
    """Errors for artifacts that no earlier stage makes and that are not in the work directory."""
    faults = []
    for place, stage in enumerate(stages):
        for option, given, kind, name in _artifacts_of(stage, known):
            makers = known.makers(kind)
            earlier = [before.values.get("name") for before in stages[:place] if before.command in makers]
            # A stage without a name chooses its own, so any reference may be right.
            if name not in earlier and None not in earlier and not known.exists(kind, name):
                made = ", ".join(repr(one) for one in earlier) or "none"
                faults.append(f"{stage.label}: no earlier stage makes {option} = {given!r}; {kind} made before: {made}")
    return faults


def _artifacts_of(stage: Stage, known: Known) -> Iterator[tuple[str, str, str, str]]:
    """The artifacts that a stage names: the option, its value, and the kind and name of the artifact.

    With `documents/NAME` in place of a file, if there is no file of that path. Without models.
    """
    for option, key in known.keys(stage.command).items():
        given = stage.values.get(option)
        if key.opt.names not in (None, MODEL) and isinstance(given, str):
            yield option, given, str(key.opt.names), given
        paths = (given if isinstance(given, list) else [given]) if key.opt.affects == "input" else []
        for path in paths:
            if not isinstance(path, str) or not names_documents(path) or [*placeholders(path)]:
                continue
            if not os.path.exists(path):
                yield option, path, DOCUMENTS, path.partition("/")[2]


def _faults_of_models(stages: Sequence[Stage], known: Known) -> list[str]:
    """Models that nothing makes, that a later stage makes, or that are called nearly as one of an earlier stage."""
    faults = []
    for place, stage in enumerate(stages):
        faults += [f"{stage.label}: {fault}" for fault in _faults_of_defaults(stage, stages[:place], known)]
        for option, name in _named_models(stage, known):
            if fault := _fault_of_model(name, option, stages, place, known):
                faults.append(f"{stage.label}: {option} = {name!r} {fault}")
    return faults


def _faults_of_defaults(stage: Stage, before: Sequence[Stage], known: Known) -> Iterator[str]:
    """Errors for omitted artifacts that no earlier stage makes: the newest in the work directory could be any."""
    made = {known.makes(earlier.command) for earlier in before}
    keys = known.keys(stage.command)
    for kind in known.commands[stage.command].needs if stage.command in known.commands else ():
        options = [name for name, key in keys.items() if key.opt.names == kind]
        if kind not in made and not any(name in stage.values for name in options):
            yield f"no earlier stage makes {kind}; name one of the work directory: {' or '.join(options)} = ..."
    for name, key in keys.items():
        newest = key.opt.names == MODEL and key.default is None and key.opt.default == NEWEST_STUDENT
        if newest and name not in stage.values and "students" not in made:
            yield f"no earlier stage makes a student; name a model: {name} = ..."
        teacher = key.opt.names == MODEL and stage.values.get(name, key.default) == TEACHER
        if teacher and TEACHER_VECTORS not in made and known.exists(TEACHER_VECTORS, None):
            yield f"{name} = 'teacher': no earlier stage has one; write {TEACHER_VECTORS}/NAME or {EMBEDDED}"


def _fault_of_model(name: str, option: str, stages: Sequence[Stage], place: int, known: Known) -> str:
    """What is wrong with the name of a model in the stage at `place`; empty if nothing is."""
    earlier, later = (_made(part, known) for part in (stages[:place], stages[place:]))
    meaning = meaning_of(name, lambda kind, own: (kind, own) in earlier or known.exists(kind, own))
    if meaning and meaning.kind == "artifact":
        return ""
    prefix, slash, rest = name.rpartition("/")
    kinds = (prefix,) if slash else KINDS
    for kind in kinds:
        if (kind, rest) in later:
            return f"is made later, by {later[kind, rest].label}"
    names = [own for kind, own in earlier if kind in KINDS and own is not None]
    slip = difflib.get_close_matches(name, names, n=1, cutoff=ALIKE)
    if slip and not os.path.exists(name):
        return f"is made by no stage; did you mean {slip[0]}?"
    if meaning and meaning.kind == "student":
        made = any(kind == "students" for kind, _ in earlier)
        return "" if made else "needs a student, and no earlier stage makes one"
    # A stage without a name chooses one itself.
    chosen = any(own is None and kind in kinds for kind, own in earlier)
    if meaning or chosen or (option == "student" and is_teacher_layers(name)):
        return ""
    return f"is made by no stage and is no known model; {_hint(name, names)}"


def _hint(name: str, names: Sequence[str]) -> str:
    close = did_you_mean(name, [*names, TEACHER, STUDENT, EMBEDDED, *PUBLISHED, *PRESETS])
    hub = f"a model of the hub is named owner/name or {HUB_PREFIX}{name}"
    return f"{close} ({hub})" if close.startswith("did you mean") else hub


def _named_models(stage: Stage, known: Known) -> list[tuple[str, str]]:
    """The options of a stage that name a model, and the names; `average` names several in one.

    Inputs of the recipe and files of vectors are left out: whether they exist is checked elsewhere.
    """
    found = []
    for option, name in _models_of(stage, known):
        elsewhere = not isinstance(name, str) or [*placeholders(name)] or VECTORS in name
        if not elsewhere and not (known.keys(stage.command)[option].optional and name == "none"):
            found.append((option, str(name)))
    return found


def _models_of(stage: Stage, known: Known) -> Iterator[tuple[str, Any]]:
    """The options of a stage that name a model, and what is given for each."""
    for option, key in known.keys(stage.command).items():
        if key.opt.names == MODEL:
            given = stage.values.get(option)
            yield from ((option, name) for name in (given if isinstance(given, list) else [given]))


def _made(stages: Sequence[Stage], known: Known) -> dict[tuple[str | None, str | None], Stage]:
    """Kind and name of what stages make, where the name may be None, and the first stage that makes it."""
    found: dict[tuple[str | None, str | None], Stage] = {}
    for stage in stages:
        name = stage.values.get("name")
        found.setdefault((known.makes(stage.command), name if isinstance(name, str) else None), stage)
    return found


def faults_of_rows(recipe: Recipe, known: Known) -> list[str]:
    """Errors for rows whose model no stage scores, in the recipe as it is written: overrides do not matter here."""
    scored = sorted(
        {
            name
            for stage in recipe.stages
            if known.makes(stage.command) == EVALUATIONS
            for _, name in _models_of(stage, known)
            if isinstance(name, str)
        }
    )
    listed = ", ".join(scored) or "none"
    return [
        f"row {number}: no stage scores of = {row.of!r}; scored: {listed}"
        for number, row in enumerate(recipe.rows, start=1)
        if row.of not in scored
    ]


def _faults_of_names(stages: Sequence[Stage], known: Known) -> list[str]:
    """Errors for stages that would replace the result of another one."""
    faults: list[str] = []
    makers: dict[tuple[str, str], Stage] = {}
    for stage in stages:
        kind, name = known.makes(stage.command), stage.values.get("name")
        if kind is None or not isinstance(name, str):
            continue
        if first := makers.get((kind, name)):
            faults.append(f"{stage.label}: name = {name!r} would replace the result of {first.label}")
        makers.setdefault((kind, name), stage)
    return faults
