"""The artifacts that training starts from: found by name or by what belongs together, and checked for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sentcompress.commands import fit_pca
from sentcompress.commands.spelling import words, work_words
from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.plain_text import shell_line, shell_word
from sentcompress.store import Artifact, WorkDirectory

# What fit-pca calls a projection by default.
DEFAULT_NAME = re.compile(r"(pca|whiten)-([1-9][0-9]{0,9})")
# The options of fit-pca that make a projection what it is.
FITTED_WITH = ("dim", "sample", "whiten", "seed")


@dataclass(frozen=True)
class Inputs:
    """A sentence table, the teacher's vectors of its rows, and a projection fitted on those."""

    sentences: Artifact
    vectors: Artifact
    projection: Artifact | None


def find_inputs(
    work: WorkDirectory,
    *,
    sentences: str | None,
    vectors: str | None,
    projection: str | None,
    needs_projection: bool,
) -> Inputs:
    """Find the inputs. By default, those that the named inputs were made from, otherwise the newest.

    A projection that is not named has to be the only one that was fitted on the vectors.

    Raises:
        MissingArtifactError: if one is missing; the hint is the command that makes it.
        UsageError: if there are several projections and none is named.
        InputError: if they do not belong together.
    """
    if vectors is None:
        vectors = _vectors_that_fit(work, sentences, projection)
    found = work.get("teacher-vectors", vectors)
    table = work.get("sentences", sentences or found.input_of_kind("sentences"))
    if found.inputs.get(table.reference) != table.digest:
        raise InputError(
            f"{found.reference} was not made from {table.reference} as it is now: its rows are other sentences",
            f"run: {_embedding(table, found, work)}",
        )
    fitted = _find_projection(work, projection, found) if needs_projection else None
    return Inputs(table, found, fitted)


def _embedding(sentences: Artifact, vectors: Artifact, work: WorkDirectory) -> str:
    """The command for vectors of a sentence table: the recorded one if these vectors are of an older version of it."""
    if vectors.input_of_kind("sentences") == sentences.name:
        return vectors.command_line()
    return f"sentcompress teacher-embed --sentences {shell_word(sentences.name)} --work {shell_word(work.path)}"


def _fitting(vectors: Artifact, work: WorkDirectory, **options: Any) -> str:
    """The command that fits a projection on these vectors."""
    params = fit_pca.Params(teacher_vectors=vectors.name, **options)
    return shell_line(["sentcompress", *words(params), *work_words(work.path)])


def _vectors_that_fit(work: WorkDirectory, sentences: str | None, projection: str | None) -> str | None:
    if projection is not None and (named := work.find("projections", projection)):
        return named.input_of_kind("teacher-vectors")
    if sentences is not None:
        for found in work.newest("teacher-vectors"):
            if found.input_of_kind("sentences") == sentences:
                return found.name
    return None


def _find_projection(work: WorkDirectory, name: str | None, vectors: Artifact) -> Artifact:
    if name is None:
        fitted = [p for p in work.newest("projections") if p.inputs.get(vectors.reference) == vectors.digest]
        if not fitted:
            raise MissingArtifactError(
                f"no projection fitted on {vectors.reference} in {work.path}", f"run: {_fitting(vectors, work)}"
            )
        if len(fitted) > 1:
            listed = ", ".join(f"{p.name} ({p.facts['dimension']} dimensions)" for p in reversed(fitted))
            raise UsageError(
                f"several projections are fitted on {vectors.reference}: {listed}",
                f"choose one, for example: `projection` {shell_word(fitted[0].name)}",
            )
        return fitted[0]
    if work.find("projections", name) is None:
        raise _no_projection(work, name, vectors)
    found = work.get("projections", name)
    if found.inputs.get(vectors.reference) != vectors.digest:
        # With its own options: an artifact of that name with other ones would not be replaced.
        own = {option: value for option, value in found.parameters.items() if option in FITTED_WITH}
        older = vectors.reference in found.inputs
        command = found.command_line() if older else _fitting(vectors, work, **own, name=name)
        raise InputError(f"{found.reference} was not fitted on {vectors.reference} as it is now", f"run: {command}")
    return found


def _no_projection(work: WorkDirectory, name: str, vectors: Artifact) -> InputError | MissingArtifactError:
    """The error for a projection that does not exist."""
    default, width = DEFAULT_NAME.fullmatch(name), int(vectors.facts["dimension"])
    if default and int(default[2]) > width:
        return InputError(
            f"{vectors.reference} has {width} dimensions: no projection of it has {default[2]}", "choose a lower `dim`"
        )
    known = work.names("projections")
    there = f" (there are: {', '.join(known)})" if known else ""
    options: dict[str, Any] = {"name": name}
    if default:
        options = {"dim": int(default[2]), "whiten": default[1] == "whiten"}
    command = _fitting(vectors, work, **options)
    return MissingArtifactError(f"no projection {name!r} in {work.path}{there}", f"run: {command}")
