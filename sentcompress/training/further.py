"""The defaults for training a finished student further: its own method and options, and a gentle learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sentcompress.commands.distill import Params
from sentcompress.methods import METHODS, method_class
from sentcompress.models.names import meaning_of
from sentcompress.models.shape import layer_count
from sentcompress.progress import Reporter
from sentcompress.published import PUBLISHED
from sentcompress.store import Artifact, WorkDirectory

# Of the learning rate that the method starts with: a finished student is near a minimum, which the full rate leaves.
# A student that was itself trained at a lower rate keeps that one.
GENTLE = 0.6
# The fact of a student that was not trained itself: the reference of the model whose method it is trained further with.
METHOD_OF = "method_of"
# As `compress` trains students further.
OF_PUBLISHED: Mapping[str, Any] = {
    "schedule": "cosine",
    "warmup_steps": 30,
    "batch_size": 64,
    "batch_tokens": 2048,
    "max_length": 256,
}


@dataclass(frozen=True)
class _Making:
    """How a student was made: its method, the options of that, the highest learning rate for it, and other settings."""

    method: str
    options: Mapping[str, str]
    rate: float
    settings: Mapping[str, Any]


def further(params: Params, work: WorkDirectory, reporter: Reporter) -> Params:
    """The options of `distill` with the method of a finished student, if none was asked for.

    Not if that method trains a new head on top of the student, as hpd does: the vectors would change their width.
    """
    if params.method is not None or layer_count(params.student) is not None:
        return params
    made = _making_of(params.student, work)
    if made is None:
        return params
    asked = {option.partition("=")[0].strip().replace("-", "_") for option in params.options}
    kept = tuple(f"{name}={value}" for name, value in made.options.items() if name not in asked)
    rate = params.lr or made.rate
    settings = {name: value for name, value in made.settings.items() if getattr(params, name) is None}
    reporter.note(
        f"{params.student} is a finished student: training continues with its own method, {made.method}, "
        f"learning rate {rate:g}"
    )
    return replace(params, method=made.method, options=(*kept, *params.options), lr=rate, **settings)


def _making_of(name: str, work: WorkDirectory) -> _Making | None:
    meaning = meaning_of(name, lambda kind, own: work.find(kind, own) is not None)
    if meaning is None:
        return None
    if meaning.kind == "source":
        found = PUBLISHED.get(meaning.name)
        if not found:
            return None
        options = dict(one.split("=", 1) for one in found.options)
        return _Making(found.method, options, _gentle(found.method), OF_PUBLISHED)
    kind, _, own = meaning.name.partition("/")
    if kind != "students" and meaning.kind != "student":
        return None
    return _of_artifact(work.get("students", own if kind == "students" else None), work)


def _of_artifact(student: Artifact, work: WorkDirectory) -> _Making | None:
    """The making of a student; of an average or a selection, that of the model which it names."""
    while reference := student.facts.get(METHOD_OF):
        kind, _, own = str(reference).partition("/")
        before = work.find(kind, own) if kind == "students" else None
        if before is None:
            published = str(reference).removeprefix("model:")
            return _making_of(published, work) if published in PUBLISHED else None
        student = before
    method = student.facts.get("method")
    options = student.facts.get("options")
    if method not in METHODS or not isinstance(options, dict) or "pca" in method_class(str(method)).needs:
        return None
    plain = {option: one.default for option, one in method_class(str(method)).options.items()}
    changed = {key: value for key, value in options.items() if key in plain and value != plain[key]}
    rate = min(_gentle(str(method)), float(student.facts["recipe"]["lr"]["value"]))
    return _Making(str(method), {key: str(value).lower() for key, value in changed.items()}, rate, {})


def _gentle(method: str) -> float:
    return GENTLE * float(method_class(method).recipe.lr.value or 0)
