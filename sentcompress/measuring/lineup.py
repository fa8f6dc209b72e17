"""Loads the contenders of a measurement: every model in every runtime that it supports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sentcompress.evaluation.metrics import WEIGHT_BYTES
from sentcompress.exporting.graph_embedder import GRAPHS
from sentcompress.extras import is_installed
from sentcompress.measuring.contender import Contender
from sentcompress.measuring.runtimes import GraphJob, TorchJob
from sentcompress.models.catalog import NamedModel
from sentcompress.models.encoder import Encoder
from sentcompress.models.model_files import weight_bytes
from sentcompress.store import WorkDirectory, file_inputs

FILES = {runtime: file for runtime, (file, _) in GRAPHS.items()}


@dataclass(frozen=True)
class FoundGraph:
    """A folder with the ONNX graph of a runtime, and the inputs to record in a request."""

    folder: Path
    inputs: Mapping[str, str]


def graphs_can_run() -> bool:
    """Whether onnxruntime is installed."""
    return is_installed("onnxruntime")


def find_graphs(work: WorkDirectory, model: NamedModel) -> dict[str, FoundGraph]:
    """The ONNX graphs of exactly this model, by runtime: those in its folder, otherwise the newest export's."""
    return {runtime: graph for runtime, file in FILES.items() if (graph := _find_graph(work, model, file))}


def _find_graph(work: WorkDirectory, model: NamedModel, file: str) -> FoundGraph | None:
    path = model.source.path / file
    if path.is_file():
        return FoundGraph(model.source.path, {} if model.covers_all_files else file_inputs([path]))
    for export in work.newest("exports"):
        # The inputs alone do not tell: the model of a router's documents is one of them.
        is_of = export.parameters.get("model") == model.reference
        if is_of and export.inputs.get(model.reference) == model.digest and (export.path / file).is_file():
            return FoundGraph(export.path, {export.reference: export.digest})
    return None


def line_up(
    models: Mapping[str, NamedModel],
    encoders: Mapping[str, Encoder],
    graphs: Mapping[str, Mapping[str, FoundGraph]],
    runtimes: Sequence[str],
    device: str,
) -> tuple[list[Contender], dict[str, NamedModel]]:
    """Load all contenders.

    Args:
        models: models by role.
        encoders: the same models, loaded.
        graphs: the graphs of each role, by runtime.
        runtimes: names of RUNTIMES.
        device: for torch; graphs run on the CPU.

    Returns:
        The contenders, and for each runtime of a graph that a model lacks, this model.
    """
    found: list[Contender] = []
    missing: dict[str, NamedModel] = {}
    for runtime in runtimes:
        for role, model in models.items():
            if runtime not in FILES:
                found.append(_in_torch(role, runtime, model, encoders[role], device))
            elif graph := graphs[role].get(runtime):
                found.append(_as_graph(role, runtime, graph, encoders[role]))
            else:
                missing[runtime] = model
    return found, missing


def _in_torch(role: str, runtime: str, model: NamedModel, encoder: Encoder, device: str) -> Contender:
    job = TorchJob(model, runtime, device, torch.get_num_threads())
    return Contender(role, runtime, job, job.load(encoder), weight_bytes(model.source.path))


def _as_graph(role: str, runtime: str, graph: FoundGraph, encoder: Encoder) -> Contender:
    # The same number of threads as torch uses, for a fair comparison.
    job = GraphJob(graph.folder, FILES[runtime], encoder.text, torch.get_num_threads())
    return Contender(role, runtime, job, job.load(), (graph.folder / FILES[runtime]).stat().st_size)


def described(model: NamedModel, encoder: Encoder) -> dict[str, Any]:
    """The properties of a model that do not depend on the runtime."""
    return {
        "label": model.label,
        "reference": model.reference,
        "digest": model.digest,
        "parameters": encoder.count_parameters(),
        WEIGHT_BYTES: weight_bytes(model.source.path),
        "dimension": encoder.dimension,
    }
