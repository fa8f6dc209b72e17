"""The result of a compression: size, speed and search fidelity, in figures and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sentcompress.evaluation.metrics import FIRST_FOUND, NDCG, RESULTS_SHARED, SEARCH_FIDELITY, SPEED
from sentcompress.evaluation.results import read_evaluation
from sentcompress.evaluation.score import COMPARE, MODEL, Interval, first_score
from sentcompress.evaluation.search_verdict import FEW_PASSAGES, expectation_of
from sentcompress.models.weight_formats import INT8
from sentcompress.numeric import between, whole_share
from sentcompress.quantities import counted, told_bytes
from sentcompress.store import Artifact

# The export format of the graph whose bytes are limited, see `exporting.formats`.
GRAPH_FORMAT = "int8"


@dataclass(frozen=True)
class Achieved:
    """The result of a compression in figures. Sizes are in bytes.

    Attributes:
        export: the folder of the model.
        bytes, teacher_bytes: size of the int8 graph, and of the teacher's weights.
        vector_bytes, teacher_vector_bytes: size of a stored vector, and of the teacher's float32 vector.
        fidelity, interval: search fidelity of the int8 graph with stored vectors, on test queries, and its 95%
            interval.
        resampled: what was resampled for the interval, such as "193 documents".
        faster: speed of the model in its fastest runtime, relative to the teacher in torch with float32.
        judged: percent of the teacher's nDCG@10 on judged queries, for the int8 graph with float32 vectors.
        shared: percent of the teacher's ten results that are among the model's ten, measured like `fidelity`.
        first_found: percent of the queries for which the teacher's first result is among the model's ten.
        graph: the path of the int8 graph; empty if the export has none.
        weight_format: how the int8 graph stores its weights: int8 or int4.
        keep_index: whether it searches vectors of the teacher.
        expected: the rule of thumb for this search fidelity; empty if too few passages were searched, because search
            fidelity is then higher.
        cautions: limits of these figures, mostly of the search fidelity.
    """

    export: str
    bytes: int
    teacher_bytes: int
    vector_bytes: int
    teacher_vector_bytes: int
    fidelity: float
    interval: Interval | None
    resampled: str
    faster: float | None
    judged: float | None
    shared: float
    first_found: float
    graph: str
    weight_format: str = INT8
    keep_index: bool = False
    expected: str = ""
    cautions: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        over = f" (95% interval over {self.resampled}: {between(self.interval, 1)})" if self.interval else ""
        vectors = f"a vector is {counted(self.vector_bytes, 'byte')} instead of {self.teacher_vector_bytes:,}"
        if self.keep_index:
            vectors = "it searches vectors of the teacher"
        faster = f" and {self.faster:.1f} times as fast" if self.faster else ""
        judged = f"; on your judged queries, it keeps {self.judged:.1f}% of nDCG@10" if self.judged is not None else ""
        if judged and not self.keep_index:
            judged += " (float32 vectors)"
        return (
            f"The model is {told_bytes(self.bytes)} instead of {told_bytes(self.teacher_bytes)}{faster}; {vectors}. As "
            f"deployed, its search fidelity to the teacher is {self.fidelity:.1f} out of 100{over}{judged}."
        )

    @property
    def results(self) -> str:
        """How many of the teacher's results the model finds; without judged queries, also a rule of thumb."""
        expected = f" As a rule of thumb: {self.expected}." if self.expected and self.judged is None else ""
        return (
            f"Of the teacher's ten results for a query, {self.shared / 10:.1f} are among the model's ten on average; "
            f"the teacher's first result is among them for {whole_share(self.first_found)} of the queries.{expected}"
        )

    @property
    def caution(self) -> str:
        """All cautions as one sentence; empty if there is none."""
        text = "; ".join(self.cautions)
        return f"{text[:1].upper()}{text[1:]}." if text else ""

    def larger_than(self, most: int) -> str:
        """A warning that the model is larger than allowed; empty if it is not."""
        if self.bytes <= most:
            return ""
        own, allowed = told_bytes(self.bytes), told_bytes(most)
        if own == allowed:  # rounded to the same number
            own, allowed = f"{self.bytes:,} bytes", f"{most:,}"
        return (
            f"the model is {own}, more than the {allowed} allowed: sizes are estimated "
            "before training, and a graph can be 3% larger; allow 3% less, under another `name`"
        )

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence, "results": self.results, "caution": self.caution}


def verdict_of(made: Mapping[str, Artifact]) -> Achieved | None:
    """The verdict from the last stages of the recipe; None if the recipe does not end with a search of its export.

    Args:
        made: the last artifact of each command.
    """
    if "export" not in made or "eval-search" not in made:
        return None
    export, search = made["export"], read_evaluation(made["eval-search"])
    if search.models[MODEL]["reference"] != export.reference:
        return None
    stored = search.facts["protocol"].get("stored")
    fidelity, shared, first = (
        first_score(search.scores, metric) for metric in (SEARCH_FIDELITY, RESULTS_SHARED, FIRST_FOUND)
    )
    teacher = search.models[COMPARE]
    judged = first_score(read_evaluation(made["eval-retrieval"]).scores, NDCG) if "eval-retrieval" in made else None
    graph, graph_bytes = int8_graph(export.facts)
    cautions = [*search.facts["verdict"]["cautions"], *_unimproved(made.get("distill"))]
    return Achieved(
        export=str(export.path),
        bytes=graph_bytes if graph else sum(export.facts["bytes"].values()),
        teacher_bytes=int(teacher["weight_bytes"]),
        vector_bytes=int(stored["bytes"]) if stored else 4 * int(teacher["dimension"]),
        teacher_vector_bytes=4 * int(teacher["dimension"]),
        fidelity=fidelity.value if fidelity else float("nan"),
        interval=fidelity.interval if fidelity else None,
        resampled=str(search.facts["protocol"]["resampled"]),
        faster=faster(made["bench"]) if "bench" in made else None,
        judged=judged.kept if judged else None,
        shared=shared.value if shared else float("nan"),
        first_found=first.value if first else float("nan"),
        graph=str(export.path / graph) if graph else "",
        weight_format=written_weight_format(export.facts),
        keep_index=bool(search.facts["keep_index"]),
        expected=expectation_of(search.facts["verdict"]["level"]) if search.facts["passages"] >= FEW_PASSAGES else "",
        cautions=tuple(cautions),
    )


def _unimproved(student: Artifact | None) -> Iterator[str]:
    if student and student.facts["best_step"] == 0:
        yield "the last training did not improve the model, so it is the one that this training started from"


def int8_graph(facts: Mapping[str, Any]) -> tuple[str, int]:
    """The path of the int8 graph in an export, from its facts, and its bytes; an empty path and 0 if it has none."""
    files = facts["formats"].get(GRAPH_FORMAT, {"files": ()})["files"]
    return next(((path, facts["bytes"][path]) for path in files), ("", 0))


def written_weight_format(facts: Mapping[str, Any]) -> str:
    """How the int8 graph in an export stores its weights, from the facts of the export; int8 if it has none."""
    return str(facts.get("weight_format", INT8))


def faster(bench: Artifact) -> float | None:
    """The speed of the model in its fastest runtime, relative to the teacher in its first one, torch in float32."""
    scores = [score for score in read_evaluation(bench).scores if score.metric == SPEED]
    mine = [score.value for score in scores if score.role == MODEL]
    theirs = [score.value for score in scores if score.role == COMPARE]
    return max(mine) / theirs[0] if mine and theirs else None
