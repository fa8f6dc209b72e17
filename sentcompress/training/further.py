"""The defaults for training a finished student further: its own method and options, and a reduced learning rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sentcompress.commands.distill import OF_PUBLISHED, Params
from sentcompress.methods import METHODS, method_class
from sentcompress.methods.hyperparameters import OURS
from sentcompress.models.catalog import artifact_at
from sentcompress.models.names import meaning_in
from sentcompress.models.shape import layer_count
from sentcompress.progress import Reporter
from sentcompress.published import PUBLISHED
from sentcompress.store import METHOD_OF, MODEL_FILES, Artifact, WorkDirectory

# Factor on the method's learning rate: a finished student is near a minimum, which the full rate would leave. A student
# that was trained at a lower rate keeps that rate.
GENTLE = 0.6
PUBLISHED_SETTING = f"{OURS}: for published students"


class _Rate(NamedTuple):
    """A learning rate and its source."""

    value: float
    source: str


@dataclass(frozen=True)
class _Making:
    """How a student was made, as defaults for training it further.

    Attributes:
        method: the method that it was distilled with.
        options: the options of that method that were set.
        rate: the learning rate to continue with.
        settings: other options of `distill`, by field.
    """

    method: str
    options: Mapping[str, str]
    rate: _Rate
    settings: Mapping[str, Any]


def further(params: Params, work: WorkDirectory, reporter: Reporter) -> tuple[Params, dict[str, str]]:
    """The options of `distill` with the method of a finished student, if none was asked for.

    Not if that method trains a new head on top of the student, as hpd does: the vectors would change their width.

    Returns:
        The options, and the sources of the hyperparameters that were filled in, by name.
    """
    if params.method is not None or layer_count(params.student) is not None:
        return params, {}
    made = _making_of(params.student, work)
    if made is None:
        return params, {}
    asked = {option.partition("=")[0].strip().replace("-", "_") for option in params.options}
    kept = tuple(f"{name}={value}" for name, value in made.options.items() if name not in asked)
    rate = params.lr or made.rate.value
    instead = {"warmup_steps"} if params.warmup_ratio is not None else set()
    settings = {
        name: value for name, value in made.settings.items() if getattr(params, name) is None and name not in instead
    }
    filled = dict.fromkeys(settings.keys() & OF_PUBLISHED, PUBLISHED_SETTING) | (
        {} if params.lr else {"lr": made.rate.source}
    )
    reporter.note(
        f"{params.student} is a finished student: training continues with its method, {made.method}, "
        f"at learning rate {rate:g}"
    )
    params = replace(params, method=made.method, options=(*kept, *params.options), lr=rate, **settings)
    return params, filled


def _making_of(name: str, work: WorkDirectory) -> _Making | None:
    meaning = meaning_in(work, name)
    if meaning is None:
        return None
    if meaning.kind == "source":
        student = artifact_at(work, meaning.name)
        return _of_artifact(student, work) if student else _of_published(meaning.name)
    if meaning.kind == "student":
        return _of_artifact(work.get("students"), work)
    kind, _, own = meaning.name.partition("/")
    return _of_artifact(work.get(kind, own), work) if kind == "students" else None


def _of_published(name: str) -> _Making | None:
    found = PUBLISHED.get(name)
    if not found:
        return None
    options = dict(one.split("=", 1) for one in found.options)
    return _Making(found.method, options, _gentle(found.method), OF_PUBLISHED)


def _of_artifact(student: Artifact, work: WorkDirectory) -> _Making | None:
    """How a student of the work directory was made: by the distillation that it goes back to.

    A student that was made from another one, as by `finetune`, has the method of that one. The rate is the lowest of
    the method's reduced rate and those of all these trainings. None if the distillation is not found, or a student in
    between has changed since.
    """
    rates = _rates_of(student)
    seen = {student.reference}
    while student.manifest["command"] != "distill":
        reference = str(student.facts.get(METHOD_OF))
        digest = student.inputs.get(reference)
        if reference.startswith(MODEL_FILES):
            made = _of_published(reference.removeprefix(MODEL_FILES))
            return replace(made, rate=min([made.rate, *rates])) if made else None
        kind, _, own = reference.partition("/")
        before = work.find(kind, own) if kind == "students" and reference not in seen else None
        if before is None or before.digest != digest:
            return None
        seen.add(reference)
        rates += _rates_of(before)
        student = before
    method, options = str(student.facts.get("method")), student.facts.get("options")
    if method not in METHODS or not isinstance(options, dict) or "pca" in method_class(method).needs:
        return None
    plain = {option: one.default for option, one in method_class(method).options.items()}
    changed = {key: value for key, value in options.items() if key in plain and value != plain[key]}
    shown = {key: str(value).lower() for key, value in changed.items()}
    rounded = {"weight_format": student.parameters["weight_format"]} if student.parameters.get("weight_format") else {}
    parameters = int(student.facts.get("parameters") or 0)
    return _Making(method, shown, min([_gentle(method, parameters), *rates]), rounded)


def _rates_of(student: Artifact) -> list[_Rate]:
    """The learning rate that a student was trained at; none if it was not trained itself."""
    recipe = student.facts.get("recipe")
    if not isinstance(recipe, Mapping):
        return []
    return [_Rate(float(recipe["lr"]["value"]), f"the learning rate of {student.reference}")]


def _gentle(method: str, parameters: int = 0) -> _Rate:
    """The reduced rate of a method, for a student of this size; 0: an unknown size."""
    rate = GENTLE * float(method_class(method).recipe.for_size(parameters=parameters).lr.value or 0)
    return _Rate(rate, f"{OURS}: {GENTLE:g} times the method's, for a finished student")
