"""The result documents of evaluations: written once, read by everything that shows results.

A document names the `evaluation`, the `protocol` and the models (`model`, and optionally `compare`), and lists the
`scores`. Anything else in it is for the report section of that evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentcompress.errors import DamagedError
from sentcompress.evaluation.registry import EVALUATIONS, EvaluationKind
from sentcompress.evaluation.score import COMPARE, MEAN, MODEL, Score, read_scores, share_kept
from sentcompress.evaluation.tables import BESIDE, Table, short, table
from sentcompress.json_documents import finite, write_json
from sentcompress.models.prompts import OF_ROLE
from sentcompress.store import Artifact, Build, damaged, is_data

FILE = "result.json"
ROLES = (MODEL, COMPARE)
TEST = "test"


@dataclass(frozen=True)
class Evaluation:
    """A well-formed evaluation.

    Attributes:
        scores: in the order of the document, those of the main metric first.
    """

    artifact: Artifact
    scores: Sequence[Score]

    @property
    def facts(self) -> dict[str, Any]:
        """The whole document."""
        return self.artifact.facts

    @property
    def name(self) -> str:
        """The name of the evaluation: sts, retrieval, ..."""
        return str(self.facts["evaluation"])

    @property
    def kind(self) -> EvaluationKind:
        """The description of this kind of evaluation."""
        return EVALUATIONS.get(self.name) or EvaluationKind(self.name, str(self.artifact.manifest["command"]))

    @property
    def statement(self) -> str:
        """The protocol in words, with the prompts of the models."""
        told = [told for model in self.models.values() for told in _told_prompts(model)]
        return "; ".join([str(self.facts["protocol"]["statement"]), *told])

    @property
    def split(self) -> str:
        """The split of the data set that was scored; TEST if the protocol names none."""
        return str(self.facts["protocol"].get("split", TEST))

    @property
    def models(self) -> dict[str, Mapping[str, Any]]:
        """Role -> the recorded facts of the model: label, reference, digest, dimension and more."""
        return {role: self.facts[role] for role in ROLES if role in self.facts}

    @property
    def labels(self) -> dict[str, str]:
        """Role -> display name."""
        return {role: str(model["label"]) for role, model in self.models.items()}

    @property
    def documents(self) -> str:
        """How the documents' vectors were made, unless by the model itself and in float32; otherwise empty.

        For example "documents by teacher, stored as int8".
        """
        by = short(self.labels[MODEL]).partition(BESIDE)[2]
        store = self.models[MODEL].get("documents_by", {}).get("store")
        store = store or self.facts["protocol"].get("stored", {}).get("format")
        return ", ".join([f"documents by {by}"] * bool(by) + [f"stored as {store}"] * bool(store))

    @property
    def use(self) -> str:
        """How the model was used, unless by itself, in torch and with float32 vectors; otherwise empty."""
        return ", ".join(filter(None, (self.documents, self.facts["protocol"].get("runtime"))))

    @property
    def told(self) -> str:
        """The split, unless it is TEST, and `use`: what the name of a score leaves out; empty if there is nothing."""
        return ", ".join(filter(None, (f"{self.split} split" if self.split != TEST else "", self.use)))

    @property
    def data(self) -> frozenset[str]:
        """Digests of the data sets; equal for two evaluations on the same data."""
        return frozenset(digest for reference, digest in self.artifact.inputs.items() if is_data(reference))

    def headlines(self) -> list[Score]:
        """The scores of the main metric and of those in `kind.beside`, for the first part of each data set."""
        wanted = {*(score.metric for score in self.scores[:1]), *self.kind.beside}
        first: dict[tuple[str, str], str] = {}
        for score in self.scores:
            first.setdefault((score.data, score.metric), score.part)
        return [s for s in self.scores if s.metric in wanted and s.part == first[s.data, s.metric]]

    def table(self) -> Table:
        """The headlines as a table."""
        return table(self.headlines(), self.labels, self.kind.what)


def _told_prompts(model: Mapping[str, Any]) -> Iterator[str]:
    """What preceded the texts of a model, if it was not its default prompt."""
    if prompts := model.get("prompts"):
        of_role = ((role, prompts[role]) for role in OF_ROLE if role in prompts)
        told = ", ".join(
            f"{prompt!r} before a {role}" if prompt else f"none before a {role}" for role, prompt in of_role
        )
        yield f"prompts of {short(str(model['label']).partition(BESIDE)[0])}: {told}"


def write_result(build: Build, result: Mapping[str, Any]) -> Artifact:
    """Finish an artifact of kind `evaluations`; the document also becomes the manifest's facts.

    Undefined values (NaN) become null.
    """
    document = finite(result)
    with build.write(FILE) as path:
        write_json(path, document)
    return build.finish(document)


def read_evaluation(artifact: Artifact) -> Evaluation:
    """Read an evaluation, and check that it names the evaluation, the protocol and the models.

    Raises:
        DamagedError: if one is missing, or a score is invalid.
    """
    facts = artifact.facts
    roles = [facts.get(role) for role in ROLES if role == MODEL or role in facts]
    named = all(isinstance(role, Mapping) and _is_named(role) for role in roles)
    protocol = facts.get("protocol")
    stated = isinstance(protocol, Mapping) and isinstance(protocol.get("statement"), str)
    if not named or not stated or not isinstance(facts.get("evaluation"), str):
        raise damaged(artifact, "its manifest does not name the evaluation, the protocol and the model")
    try:
        scores = read_scores(facts)
    except ValueError as error:
        raise damaged(artifact, str(error)) from None
    if any(score.role not in ROLES or score.role not in facts for score in scores):
        raise damaged(artifact, "it has a score of a model it does not name")
    return Evaluation(artifact, scores)


def _is_named(model: Mapping[str, Any]) -> bool:
    return all(isinstance(model.get(key), str) for key in ("reference", "label"))


def headline_of(artifact: Artifact) -> dict[str, float]:
    """The most important value of an evaluation with its title: the mean, or else the first score.

    Empty for a damaged evaluation.

    >>> headline_of(artifact)
    {'Spearman x 100 (mean of the sets)': 81.5}
    """
    try:
        evaluation = read_evaluation(artifact)
        scores = [score for score in evaluation.headlines() if score.role == MODEL]
    except DamagedError:
        return {}
    main = [score for score in scores if score.metric == scores[0].metric]
    chosen = next((score for score in main if score.data == MEAN), main[0] if main else None)
    if chosen is None:
        return {}
    data = f"mean of the {evaluation.kind.what}s" if chosen.data == MEAN else chosen.data
    where = ", ".join(filter(None, (data, chosen.part, evaluation.told)))
    return {f"{chosen.of.title} ({where})" if where else chosen.of.title: chosen.value}


def with_compared(evaluation: Evaluation, other: Evaluation) -> Evaluation:
    """An evaluation without a compared model, combined with that of another model (same protocol, same data)."""
    theirs = {score.place: score for score in other.scores if score.role == MODEL}
    scores = []
    for score in evaluation.scores:
        beside = theirs.get(score.place)
        if beside is None:
            scores.append(score)
            continue
        difference = score.value - beside.value
        scores.append(replace(score, kept=share_kept(score.value, beside.value), difference=difference))
        scores.append(replace(beside, role=COMPARE))
    manifest = dict(evaluation.artifact.manifest)
    manifest["facts"] = {**evaluation.facts, COMPARE: other.facts[MODEL]}
    return Evaluation(replace(evaluation.artifact, manifest=manifest), scores)
