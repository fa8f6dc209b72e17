"""The models that a compression tried: how each was made, and its search fidelity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sentcompress.compression.graph_size import TransformerSize
from sentcompress.compression.verdict import faster, int8_graph, written_weight_format
from sentcompress.errors import InputError
from sentcompress.evaluation.metrics import SEARCH_FIDELITY
from sentcompress.evaluation.results import Evaluation, read_evaluation
from sentcompress.evaluation.score import MODEL, Score, first_score
from sentcompress.models.model_files import read_config, transformer_folder
from sentcompress.models.sources import model_folder
from sentcompress.models.weight_formats import INT8, WEIGHT_BYTES, with_weights
from sentcompress.published import PUBLISHED
from sentcompress.reporting.compressions import Compression
from sentcompress.store import Artifact

# Options of `distill` that change a student's shape, and their letters in its name.
CUTS = {"token-dim": "e", "vocabulary": "v", "feed-forward": "f"}


@dataclass(frozen=True)
class Tried:
    """A model whose search fidelity was measured.

    Attributes:
        name: the name of the model.
        made: the command that made it; empty for a model that existed before.
        how: how it was made, in words.
        shape: the model that the first training in its lineage started from.
        bytes: size of its int8 graph. If it was not exported, the size is that of the published student that it was
            trained from, or is computed from its configuration.
        weight_format: how this graph stores its weights, or would: int8 or int4.
        before: dev score before its training.
        score: search fidelity.
        faster: measured speed of its shape relative to the teacher; None if it was not measured.
    """

    name: str
    made: str
    how: str
    shape: str
    bytes: int
    weight_format: str
    before: float | None
    score: Score
    evaluation: Evaluation
    faster: float | None


def tried_models(compression: Compression) -> Iterator[Tried]:
    """The measured models in the order of the plan; the last one is the export."""
    shapes: dict[str, str] = {}
    for stage, found in compression.made_by("distill", "average", "select", "export"):
        start = _start(stage, found.facts)
        cut = "".join(f"-{letter}{stage[key]}" for key, letter in CUTS.items() if key in stage)
        shapes[stage["name"]] = shapes.get(start, f"{start}{cut}")
    timed = {str(stage["model"]): faster(found) for stage, found in compression.made_by("bench")}
    # All students of a shape are as fast as the first one.
    speeds = {shapes[name]: speed for name, speed in timed.items() if name in shapes}
    makers = {found.reference: (stage, found) for stage, found in compression.made_by("distill", "average", "export")}
    for search, artifact in compression.made_by("eval-search"):
        evaluation = read_evaluation(artifact)
        facts = evaluation.models[MODEL]
        made, maker = makers.get(str(facts["reference"]), ({}, None))
        command, name = str(made.get("command", "")), str(made.get("name", search["model"]))
        known = maker.facts if maker else {}
        score = first_score(evaluation.scores, SEARCH_FIDELITY)
        if score is not None:
            exported = int8_graph(known)[1] if command == "export" else 0
            before, shape = known.get("dev_before_training"), shapes.get(name, name)
            asked = str(made.get("weight-format", INT8))
            weight_format = written_weight_format(known) if command == "export" else asked
            known_size = PUBLISHED[shape].graph_bytes if shape in PUBLISHED and weight_format == INT8 else 0
            yield Tried(
                name=name,
                made=command,
                how=_how(command, made, known),
                shape=shape,
                bytes=exported or known_size or _computed_bytes(facts, maker, weight_format),
                weight_format=weight_format,
                before=before,
                score=score,
                evaluation=evaluation,
                faster=timed.get(str(search["model"]), speeds.get(shape)),
            )


def _computed_bytes(model: Mapping[str, Any], maker: Artifact | None, weight_format: str) -> int:
    """The size of a model's int8 graph, from its configuration; of a model without one, that of its weights.

    Args:
        model: the facts that the evaluation recorded about it.
        maker: its artifact; None if the compression did not make it.
    """
    try:
        config = read_config(transformer_folder(model_folder(maker))) if maker else {}
    except InputError:  # a static model has none
        config = {}
    if size := TransformerSize.of(config, int(model["dimension"])):
        return size.graph_bytes(weight_format=weight_format)
    return round(WEIGHT_BYTES[weight_format] * int(model["parameters"]))


def _start(stage: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The model that a stage's training starts from."""
    if stage["command"] == "select":
        return str(facts["models"][0])
    first = stage.get("inputs", [""])[0]
    return str(stage.get("student") or stage.get("model") or first)


def _how(command: str, stage: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    if command == "distill":
        return f"{stage['student']}, trained for {facts['training_seconds'] / 60:.1f} min"
    if command == "average":
        parts = zip(facts["models"], facts["shares"], strict=True)
        return "average of " + " and ".join(f"{name} ({100 * part:.0f}%)" for name, part in parts)
    if command == "export":
        return f"int8 graph of {stage['model']}{with_weights(written_weight_format(facts))}"
    return "not trained"
