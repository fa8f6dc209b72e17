"""The request of `compress`, as its plan records it: with absolute paths, so that it means the same in any folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sentcompress.commands import find_command
from sentcompress.commands.compress import Params
from sentcompress.commands.options import keys_of
from sentcompress.models.catalog import artifact_at
from sentcompress.models.names import meaning_of
from sentcompress.models.sources import comes_along
from sentcompress.store import WorkDirectory, name_part


def with_name_and_teacher(params: Params, work: WorkDirectory) -> Params:
    """The request with the name of its results, by default that of the documents, and the teacher's absolute place."""
    name = _name(params) if params.name is None else params.name
    return replace(params, name=name, teacher=_place(params.teacher, work))


def request_of(params: Params) -> dict[str, Any]:
    """All that a plan depends on, as a JSON object."""
    given = {key: value for key, value in vars(params).items() if key not in ("name", "dry_run", "force")}
    given["inputs"] = [absolute(one) for one in params.inputs]
    given["queries"] = [absolute(str(one)) for one in params.queries]
    given["general_text"] = [absolute(one) for one in params.general_text]
    given["judged"] = params.judged and absolute(str(params.judged))
    return {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}


def changed_options(before: Mapping[str, Any], request: Mapping[str, Any]) -> list[str]:
    """The options, by field, in which a request differs from an earlier one."""
    return [key for key, value in request.items() if key not in before or before[key] != value]


def reads_otherwise(before: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether an earlier request was for other documents, or for the same ones read in another way."""
    reading = {key.field for key in keys_of(find_command("split-documents").params).values()}
    return any(before.get(key) != request[key] for key in reading & request.keys())


def absolute(place: str) -> str:
    """The absolute path of a file or folder; any other name as it is."""
    return str(Path(place).resolve()) if Path(place).exists() else place


def _name(params: Params) -> str:
    return name_part(Path(params.inputs[0]).resolve().name.split(".")[0]) or "documents"


def _place(teacher: str, work: WorkDirectory) -> str:
    """The teacher; a model of the work directory by its reference, another folder by its absolute path."""
    meaning = meaning_of(teacher, lambda kind, name: work.has(kind, name))
    if meaning is not None and meaning.kind == "artifact":
        return meaning.name
    if meaning is None or meaning.kind != "source" or comes_along(meaning.name):
        return teacher
    made_here = artifact_at(work, teacher)
    return made_here.reference if made_here else absolute(teacher)
