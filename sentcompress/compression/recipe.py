"""The recipe that `compress` writes and runs; users can read and edit it.

Candidates are trained for a short while, and the better half is trained further (successive halving, Jamieson and
Talwalkar 2016, https://arxiv.org/abs/1502.07943). The last candidate gets most of the time.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sentcompress.commands.distill import OF_PUBLISHED
from sentcompress.compression.budget import Budget, better_half
from sentcompress.compression.measuring_time import LEAST_BENCHED
from sentcompress.compression.plan_file import PlanFile
from sentcompress.compression.shapes import Candidate
from sentcompress.corpora.documents_artifact import DEV, TEST
from sentcompress.models.weight_formats import INT8
from sentcompress.quantities import counted, told_bytes

# Unit vectors, cosines within the batch, small batches and EMA: docs/decisions/0010-small-students.md.
OBJECTIVE: Mapping[str, Any] = {"normalise": True, "reduction": "sum", "alpha": 0, "relation": 20}
# Learning rates: for a teacher that only lacks rare tokens, for other good starts, and for new shapes.
WHOLE_RATE, GOOD_RATE, RATE = 3e-5, 3e-4, 5e-4
TRAINING: Mapping[str, Any] = {
    **{name.replace("_", "-"): value for name, value in OF_PUBLISHED.items()},
    "dropout": 0,
    "epochs": 100,
    "ema": 0.99,
}
# The runtime of the export in measurements: the graph whose bytes are limited. Its speed is compared with torch.
RUNTIME, TORCH = "onnx-int8", "float32"
# Number of sentences that measure the latency of a candidate.
TIMED_SINGLY = 20
# Shares of the trained and the initial weights in their average, which loses less on other text.
MIX = (0.75, 0.25)
# Share of general text in the words to train on.
GENERAL = 0.25


@dataclass(frozen=True)
class Documents:
    """The documents that the model is made for, and how they are read.

    Attributes:
        inputs: files and folders of documents.
        queries: files of queries.
        judged: a collection with judgements, to report on.
        columns, id_column: the columns with the text and the ids.
        skip_bad: whether lines and files that cannot be read are skipped.
        text_as: what counts as one document in a text file: line, paragraph or file; None for the default.
        general: files and folders of other text, to be trained on but not measured on.
    """

    inputs: Sequence[str]
    queries: Sequence[str] = ()
    judged: str | None = None
    columns: Sequence[str] = ()
    id_column: str | None = None
    skip_bad: bool = False
    text_as: str | None = None
    general: Sequence[str] = ()

    def split_stage(self, name: str, seed: int) -> dict[str, Any]:
        """The stage that reads them, a table of the recipe."""
        given = {
            "queries": list(self.queries),
            "column": list(self.columns),
            "id-column": self.id_column,
            "skip-bad": self.skip_bad,
            "text-as": self.text_as,
        }
        return {
            "command": "split-documents",
            "inputs": list(self.inputs),
            "name": name,
            **{option: value for option, value in given.items() if value},
            "seed": seed,
        }

    def training_texts(self, own: str) -> dict[str, Any]:
        """The options of `augment` for the texts to train on; `own` names those of the documents."""
        texts: dict[str, Any] = {"inputs": [own, *self.general]}
        if self.general and self.skip_bad:
            texts["skip-bad"] = True
        if self.general:
            each = GENERAL / len(self.general)
            texts["share"] = [f"{own}={1 - GENERAL:g}", *(f"{one}={each:g}" for one in self.general)]
        return texts


@dataclass(frozen=True)
class CompressionPlan:
    """All decisions of a plan, from which the recipe is written.

    Attributes:
        name: the name of all results.
        max_bytes: maximum size of the int8 graph.
        vector_bytes: maximum size of a stored vector.
        candidates: the shapes to train, or only the teacher itself, if it fits.
        keep_index: whether the student's queries search vectors of the teacher.
        read: a line of text about the documents.
        made_for: the digests of the documents and of the teacher.
    """

    name: str
    teacher: str
    documents: Documents
    max_bytes: int
    vector_bytes: int
    budget: Budget
    candidates: Sequence[Candidate]
    keep_index: bool = False
    seed: int = 0
    read: str = ""
    made_for: tuple[str, str] = ("", "")

    @property
    def untrained(self) -> bool:
        """Whether the teacher itself fits the budget, so that nothing is trained."""
        return self.candidates[0].untrained

    @property
    def computes_all(self) -> bool:
        """Whether the model computes as much as the teacher."""
        first = self.candidates[0]
        return first.untrained or first.has_whole_layers

    @property
    def weight_option(self) -> dict[str, str]:
        """The option of `distill` and `export` for the weight format, the same for all candidates."""
        weight_format = self.candidates[0].weight_format
        return {} if weight_format == INT8 else {"weight-format": weight_format}

    def stages(self) -> Iterator[dict[str, Any]]:
        """The stages, each a table of the recipe."""
        yield from self._data()
        best = self.teacher
        if not self.untrained:
            best = yield from self._training()
        yield from self._proof(best)

    def _data(self) -> Iterator[dict[str, Any]]:
        # General text is only trained on.
        of = replace(self.documents, general=()) if self.untrained else self.documents
        yield of.split_stage(self.name, self.seed)
        augment = {"command": "augment", **of.training_texts(f"documents/{self.name}"), "wordnet": 0}
        # A limit in words samples texts from all parts of the documents.
        sampled = {"words": self.budget.words, "seed": self.seed} if self.budget.texts or of.general else {}
        yield {**augment, "back-translate": 0, **sampled, "name": self.name}
        if not self.untrained:
            embed = {"command": "teacher-embed", "teacher": self.teacher, "sentences": self.name}
            yield {**embed, "store": "float16", "name": self.name}

    def _training(self) -> Generator[dict[str, Any], None, str]:
        """The training stages; returns the name of the student to keep."""
        starts = [_options_of(candidate) for candidate in self.candidates]
        for number, seconds in enumerate(self.budget.rounds, 1):
            trials = [f"{self.name}-{number}-{place}" for place in range(1, len(starts) + 1)]
            for trial, start in zip(trials, starts, strict=True):
                yield self._distill(start, seconds, trial)
            yield from map(self._trial, trials)
            if number == 1:
                yield from map(self._timed, trials)
            best = [
                f"{self.name}-{number}-best{f'-{rank}' if rank > 1 else ''}"
                for rank in range(1, better_half(len(trials)) + 1)
            ]
            for rank, name in enumerate(best, 1):
                yield self._select(trials, name, rank)
            starts = [{"student": name} for name in best]
        start, last = starts[0], f"{self.name}-last"
        yield self._distill(start, self.budget.last, last)
        if not self.candidates[0].is_averaged(bool(self.budget.rounds)):
            return last
        # If the last training kept its start, this is the same model, whose vectors are then in the cache.
        mixed = f"{self.name}-mixed"
        yield {"command": "average", "inputs": [last, start["student"]], "weights": list(MIX), "name": mixed}
        yield from map(self._trial, (last, mixed))
        yield self._select([last, mixed], self.name, 1)
        return self.name

    def _trial(self, model: str) -> dict[str, Any]:
        """The evaluation stage that compares students."""
        few = {"max-passages": self.budget.dev_passages}
        return {**self._search(model), **few, "part": DEV, "name": f"{model}-trial"}

    def _timed(self, model: str) -> dict[str, Any]:
        """The stage that measures a candidate's speed and the teacher's, both in torch."""
        few = {"count": LEAST_BENCHED, "single": TIMED_SINGLY, "memory": False, "runtimes": [TORCH]}
        compared = {"model": model, "compare": self.teacher, "sentences": self.name}
        return {"command": "bench", **compared, **few, **_at_most(self.budget.racing), "name": f"{model}-speed"}

    def _search(self, model: str) -> dict[str, Any]:
        asymmetric = {"keep-index": True} if self.keep_index else {}
        return {
            "command": "eval-search",
            "documents": self.name,
            "model": model,
            "compare": self.teacher,
            **asymmetric,
            "max-passages": self.budget.passages,
        }

    def _select(self, names: Sequence[str], name: str, rank: int) -> dict[str, Any]:
        place = {"rank": rank} if rank > 1 else {}
        return {"command": "select", "inputs": list(names), "data": f"{self.name} {DEV}", **place, "name": name}

    def _distill(self, start: Mapping[str, Any], seconds: float, name: str) -> dict[str, Any]:
        return {
            "command": "distill",
            **start,
            "sentences": self.name,
            "teacher-vectors": self.name,
            "dev": f"documents/{self.name}",
            "dev-passages": self.budget.dev_passages,
            **({"keep-index": True} if self.keep_index else {}),
            **TRAINING,
            **self.weight_option,
            **_at_most(seconds),
            "seed": self.seed,
            "set": dict(OBJECTIVE),
            "name": name,
        }

    def _proof(self, best: str) -> Iterator[dict[str, Any]]:
        name = self.name
        stored: dict[str, Any] = {"router": self.teacher} if self.keep_index and not self.untrained else {}
        if not self.keep_index:  # otherwise, the index has its vectors already
            stored = {"quantizer": name}
            yield {
                "command": "fit-quantizer",
                "model": best,
                "documents": name,
                "compare": self.teacher,
                "vector-bytes": self.vector_bytes,
                "sample": self.budget.sample,
                "max-passages": self.budget.passages,
                "name": name,
            }
        exported = {"command": "export", "model": best, "float16": True, **self.weight_option, **stored}
        yield {**exported, "calibrate": f"documents/{name}", "name": name}
        compared = {"model": f"exports/{name}", "compare": self.teacher}
        # As deployed, on queries that were not used for any choice.
        deployed = {"runtime": RUNTIME, **({} if self.keep_index else {"stored": True})}
        yield {**self._search(f"exports/{name}"), "part": TEST, **deployed, "name": f"{name}-search"}
        if self.documents.judged:
            judged = {"collection": self.documents.judged, "index": ["flat"], **compared, "runtime": RUNTIME}
            indexed = {"document-model": self.teacher} if self.keep_index else {}
            yield {"command": "eval-retrieval", **judged, **indexed, "name": f"{name}-judged"}
        yield {
            "command": "bench",
            **compared,
            "sentences": name,
            "count": self.budget.benched,
            **_at_most(self.budget.benching),
            # Not in bfloat16, which is slow on many processors and would take most of the time.
            "runtimes": [TORCH, RUNTIME],
            "memory": False,
            "name": f"{name}-speed",
        }


def _at_most(seconds: float) -> dict[str, Any]:
    """The option that limits the time of a stage, in case the load of the machine has increased."""
    return {"max-minutes": max(0.01, round(seconds / 60, 2))}


def _options_of(candidate: Candidate) -> dict[str, Any]:
    """The options of `distill` for a candidate."""
    rate = WHOLE_RATE if candidate.has_whole_layers else GOOD_RATE if candidate.is_good else RATE
    return {"student": candidate.student, "method": "simtde", **candidate.options, "lr": rate}


def written_recipe(plan: CompressionPlan, made: PlanFile) -> str:
    """The recipe as TOML.

    Args:
        made: the plan in the form in which its file stores it.
    """
    stored = "vectors of the teacher" if plan.keep_index else f"{counted(plan.vector_bytes, 'byte')} a vector"
    title = f"{plan.name}: at most {told_bytes(plan.max_bytes)}, {stored}"
    lines = [
        made.head,
        *(f"# {line}" for line in made.told),
        f"title = {_value(title)}",
    ]
    for stage in made.stages or ():
        lines += ["", "[[stage]]", *(f"{key} = {_value(value)}" for key, value in stage.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    return "[" + ", ".join(map(_value, value)) + "]"
