"""The artifacts that training starts from: found by name or by what belongs together, and checked for it."""

from __future__ import annotations

from dataclasses import dataclass

from sentcompress.errors import InputError, MissingArtifactError, UsageError
from sentcompress.plain_text import shell_word
from sentcompress.store import Artifact, WorkDirectory


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
            f"run: {embedding(table, work)}",
        )
    fitted = _find_projection(work, projection, found) if needs_projection else None
    return Inputs(table, found, fitted)


def embedding(sentences: Artifact, work: WorkDirectory) -> str:
    """The command that computes the teacher's vectors of a sentence table."""
    return f"sentcompress teacher-embed --sentences {shell_word(sentences.name)} --work {shell_word(work.path)}"


def _vectors_that_fit(work: WorkDirectory, sentences: str | None, projection: str | None) -> str | None:
    if projection is not None and (named := work.find("projections", projection)):
        return named.input_of_kind("teacher-vectors")
    if sentences is not None:
        for found in work.newest("teacher-vectors"):
            if found.input_of_kind("sentences") == sentences:
                return found.name
    return None


def _find_projection(work: WorkDirectory, name: str | None, vectors: Artifact) -> Artifact:
    command = f"sentcompress fit-pca --teacher-vectors {shell_word(vectors.name)} --work {shell_word(work.path)}"
    if name is None:
        fitted = [p for p in work.newest("projections") if p.inputs.get(vectors.reference) == vectors.digest]
        if not fitted:
            raise MissingArtifactError(f"no projection fitted on {vectors.reference} in {work.path}", f"run: {command}")
        if len(fitted) > 1:
            listed = ", ".join(f"{p.name} ({p.facts['dimension']} dimensions)" for p in reversed(fitted))
            raise UsageError(
                f"several projections are fitted on {vectors.reference}: {listed}",
                f"choose one, for example: `projection` {shell_word(fitted[0].name)}",
            )
        return fitted[0]
    if work.find("projections", name) is None:
        dimension = name.removeprefix("pca-")
        option = f" --dim {dimension}" if dimension.isdecimal() else ""
        width = int(vectors.facts["dimension"])
        if option and int(dimension) > width:
            raise InputError(
                f"{vectors.reference} has {width} dimensions: no projection of it has {dimension}",
                "choose a lower `dim`",
            )
        known = work.names("projections")
        there = f" (there are: {', '.join(known)})" if known else ""
        raise MissingArtifactError(f"no projection {name!r} in {work.path}{there}", f"run: {command}{option}")
    found = work.get("projections", name)
    if found.inputs.get(vectors.reference) != vectors.digest:
        raise InputError(
            f"{found.reference} was not fitted on {vectors.reference} as it is now",
            f"run: {command} --name {shell_word(name)}",
        )
    return found
