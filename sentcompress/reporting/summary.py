"""Summaries of models for the overview, and the short table of one model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sentcompress.evaluation.metrics import SPEED, WEIGHT_BYTES
from sentcompress.evaluation.registry import EVALUATIONS
from sentcompress.evaluation.results import TEST, Evaluation
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, Score, share_kept, size_scores, sizes_of
from sentcompress.evaluation.tables import kept_or_gained, ratio
from sentcompress.json_documents import to_json
from sentcompress.numeric import share
from sentcompress.reporting.evidence import Evidence, Student

KEPT = "kept"
# Evaluation, data set, metric.
Measured = tuple[str, str, str]
# What an evaluation measured: the digests of its data, the sizes of samples, and the settings that change a score.
Terms = tuple[frozenset[str], str]
# Settings of a protocol that change no score, or that `Evaluation.use` tells.
UNRELATED = {"statement", "bootstrap", "rounds", "threads", "timed_queries", "single_queries", "runtime", "stored"}
SAMPLED = ("queries", "passages", "documents", "sentences")


@dataclass
class Summary:
    """All results of one model.

    Attributes:
        compared: whether the report is about this model; see `Evidence.compared`.
        sizes: values of PARAMETERS, WEIGHT_BYTES and VECTOR_BYTES.
        scores: headline scores of its evaluations, without means. The scores of a metric have the same data and
            protocol for all models. If there are several, the newest counts, and one measured in torch comes first.
    """

    reference: str
    compared: bool
    sizes: dict[str, int] = field(default_factory=dict)
    scores: dict[Measured, Score] = field(default_factory=dict)

    def values(self, name: str, metric: str) -> dict[str, float]:
        """Data set -> value, for one metric of one evaluation."""
        return {data: s.value for (of, data, by), s in self.scores.items() if (of, by) == (name, metric)}

    @property
    def speed(self) -> Score | None:
        """The encoding speed."""
        return next((score for score in self.scores.values() if score.metric == SPEED), None)

    @property
    def times_faster(self) -> float | None:
        """Encoding speed relative to the compared model in the same run."""
        return ratio(self.speed) if self.speed else None


@dataclass(frozen=True)
class VerdictLine:
    """One row of the short table: a value of the model and of the compared model.

    Attributes:
        student, teacher: the values; `teacher` is None without a compared model.
        ratio: percent if `better` is "kept", a factor if it is "smaller" or "faster".
        shown: student, teacher and ratio as text.
        source: the artifact with the values; for sizes, the model's own.
    """

    metric: str
    student: float
    teacher: float | None
    ratio: float | None
    better: str
    source: str
    shown: tuple[str, str, str]


def order(evidence: Evidence) -> list[str]:
    """The names of the evaluations present, registered ones first and in registration order."""
    there = dict.fromkeys(evaluation.name for evaluation in evidence.evaluations)
    return [name for name in EVALUATIONS if name in there] + [name for name in there if name not in EVALUATIONS]


def summaries(evidence: Evidence) -> dict[str, Summary]:
    """A summary for each model."""
    found = {reference: Summary(reference, evidence.compared(reference)) for reference in evidence.names}
    shared, plain = _shared_terms(evidence), set()
    for evaluation in evidence.evaluations:
        for model in evaluation.models.values():
            found[str(model["reference"])].sizes |= sizes_of(model)
        for score in _counting(evaluation):
            scores, key = found[score.model].scores, (evaluation.name, score.data, score.metric)
            if shared.get(key, _terms(evaluation)) != _terms(evaluation):
                continue
            if score.role == MODEL and evaluation.use and (score.model, key) in plain:
                continue
            if score.role == COMPARE or not evaluation.use:
                plain.add((score.model, key))
            before = scores.get(key)
            if before and evaluation.facts["protocol"].get("preset"):
                continue  # the speed on the user's sentences takes precedence over a published protocol
            if before and score.kept is None and before.value == score.value:
                score = replace(score, kept=before.kept)  # measured again without a compared model
            scores[key] = score
    for student in evidence.students:
        summary = found[student.artifact.reference]
        summary.sizes = _sizes_of_student(student) | summary.sizes
    return found


def _shared_terms(evidence: Evidence) -> dict[Measured, Terms]:
    """The terms under which most models were measured, the newest if several are equal; without speeds and sizes."""
    models: dict[Measured, dict[Terms, set[str]]] = {}
    for evaluation in evidence.evaluations:
        for score in _counting(evaluation):
            if not score.of.gain:
                of = models.setdefault((evaluation.name, score.data, score.metric), {})
                measured = of.pop(_terms(evaluation), set())
                of[_terms(evaluation)] = measured | {score.model}
    return {key: max(reversed(of), key=lambda terms: len(of[terms])) for key, of in models.items()}


def _terms(evaluation: Evaluation) -> Terms:
    settings = {key: value for key, value in evaluation.facts["protocol"].items() if key not in UNRELATED}
    sizes = {key: evaluation.facts[key] for key in SAMPLED if isinstance(evaluation.facts.get(key), int)}
    return evaluation.data, to_json({**settings, "sizes": sizes})


def common(scores: Sequence[Mapping[str, float]]) -> list[str]:
    """The data sets that every model with scores was evaluated on, in the order of the first model."""
    scored = [of_model for of_model in scores if of_model]
    return [name for name in scored[0] if all(name in other for other in scored)] if scored else []


def mean_over(scores: Mapping[str, float], names: Sequence[str]) -> float | None:
    """The mean of scores rounded to two decimals, as in papers; None if a data set is missing."""
    if not names or any(name not in scores for name in names):
        return None
    return sum(round(scores[name], 2) for name in names) / len(names)


def evaluations_of(evidence: Evidence, reference: str) -> list[Evaluation]:
    """The evaluations with this model in the role `model`, in the order of `order`."""
    names = order(evidence)
    found = [one for one in evidence.evaluations if one.models[MODEL]["reference"] == reference]
    return sorted(found, key=lambda one: names.index(one.name))


def lines_of(evidence: Evidence, reference: str) -> list[VerdictLine]:
    """The short table of a model: sizes, then evaluations; empty without evaluations."""
    about = evaluations_of(evidence, reference)
    return [*_size_lines(evidence, about), *(line for one in about for line in _lines(one))] if about else []


def _lines(evaluation: Evaluation) -> Iterator[VerdictLine]:
    scores = [score for score in evaluation.headlines() if score.data != MEAN]
    theirs = {score.place: score for score in scores if score.role == COMPARE}
    for score in scores:
        if score.role == MODEL:
            yield _line(score, theirs.get(score.place), evaluation.artifact.reference, evaluation.told)


def _line(score: Score, other: Score | None, source: str, told: str = "") -> VerdictLine:
    metric = score.of
    shown = (metric.show(score.value), metric.show(other.value) if other else "", _in_words(score))
    found = ratio(score) if metric.gain else score.kept
    return VerdictLine(
        metric=", ".join(filter(None, (score.title, told))),
        student=score.value,
        teacher=other.value if other else None,
        ratio=found,
        better=metric.gain or KEPT,
        source=source,
        shown=shown,
    )


def _in_words(score: Score) -> str:
    said = kept_or_gained(score)
    return f"{said} kept" if said.endswith("%") else said


def _size_lines(evidence: Evidence, about: Sequence[Evaluation]) -> Iterator[VerdictLine]:
    """Sizes of the model and of the model it was last compared with, if any."""
    known = summaries(evidence)
    chosen = next((one for one in reversed(about) if COMPARE in one.models), about[-1])
    references = {role: str(model["reference"]) for role, model in chosen.models.items()}
    scores = size_scores(references, {role: known[of].sizes for role, of in references.items()})
    theirs = {score.place: score for score in scores if score.role == COMPARE}
    for score in scores:
        if score.role == MODEL:
            yield _line(score, theirs.get(score.place), references[MODEL])


def _counting(evaluation: Evaluation) -> Iterator[Score]:
    """Headline scores that represent a model: test split only, and float32 vectors of both sides by itself."""
    if evaluation.split != TEST:
        return
    for score in evaluation.headlines():
        if score.data != MEAN and not (score.role == MODEL and evaluation.documents):
            yield score


def _sizes_of_student(student: Student) -> dict[str, int]:
    files = student.artifact.manifest["files"].items()
    weights = sum(entry["bytes"] for name, entry in files if name.endswith(".safetensors"))
    return sizes_of(student.artifact.facts) | ({WEIGHT_BYTES: weights} if weights else {})


def share_of_only(score: float | None, others: Sequence[float | None]) -> float | None:
    """A score in percent of the single known score among `others`; None if there is not exactly one."""
    known = [value for value in others if value is not None]
    return share_kept(score, known[0]) if score is not None and len(known) == 1 and known[0] > 0 else None


def shown_share(kept: float | None) -> str:
    """A percentage in brackets, to follow a score; empty for None."""
    return f" ({share(kept)})" if kept is not None else ""
