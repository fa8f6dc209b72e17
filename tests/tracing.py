"""Conversion to ONNX, which takes seconds however small the model is: once for each structure that tests export."""

from __future__ import annotations

import copy
import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from sentcompress.exporting import onnx as exporting
from sentcompress.models.encoder import Encoder
from sentcompress.models.layout import save_encoder

_trace = exporting._trace


@dataclass(frozen=True)
class _Form:
    """A converted graph, and which of its tensors are weights: by their index, the parameter and if it is transposed.

    Equal weights, such as biases of zero, share a tensor in a converted graph. Here, each weight has its own.
    """

    graph: Any
    weights: dict[int, tuple[str, bool]]


# The graphs that this process has converted, by the structure of their models.
_FORMS: dict[str, _Form] = {}
_OPERATORS: dict[tuple[tuple[str, Any], ...], Any] = {}


@contextmanager
def operators_found_once() -> Iterator[None]:
    """Inside the block, torch makes its table of ONNX operators once in a process: a third of a conversion's time."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    make = ONNXRegistry.from_torchlib

    def made(**asked: Any) -> Any:
        key = tuple(asked.items())
        if key not in _OPERATORS:
            _OPERATORS[key] = make(**asked)
        return _OPERATORS[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(made))
        yield


@contextmanager
def traced_once() -> Iterator[None]:
    """Inside the block, a model of a structure that this process has converted gets that graph with its own weights.

    Everything else of the export runs: what is made of the graph, its quantisation, its calibration and its checks.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "_trace", _filled)
        yield


def _filled(encoder: Encoder) -> Any:
    import onnx

    structure = _structure(encoder)
    if structure not in _FORMS:
        _FORMS[structure] = _converted(encoder)
    form = _FORMS[structure]
    weights = dict(encoder.named_parameters())
    graph = onnx.ModelProto()
    graph.CopyFrom(form.graph)
    for index, (name, transposed) in form.weights.items():
        graph.graph.initializer[index].raw_data = _bytes(weights[name], transposed)
    return graph


def _structure(encoder: Encoder) -> str:
    """A digest of everything that a graph is made of but the values of the weights."""
    with tempfile.TemporaryDirectory() as place:
        save_encoder(encoder, Path(place))
        parts = [(str(path.relative_to(place)), path.read_text()) for path in sorted(Path(place).rglob("*config.json"))]
        parts = [part for part in parts if not part[0].startswith("tokenizer")]
    shapes = [(name, tuple(one.shape), str(one.dtype)) for name, one in encoder.named_parameters()]
    buffers = [(name, one.tolist()) for name, one in encoder.named_buffers()]
    known = (type(encoder), encoder.padding, encoder.text.max_length, parts, shapes, buffers)
    return hashlib.sha256(repr(known).encode()).hexdigest()


def _converted(encoder: Encoder) -> _Form:
    """Convert a copy with random weights, by which they are found in the graph."""
    marked = copy.deepcopy(encoder)
    generator = torch.Generator().manual_seed(0)
    found = {}
    with torch.no_grad():
        for name, weight in marked.named_parameters():
            weight.copy_(torch.rand(weight.shape, generator=generator))
            found |= {_bytes(weight, transposed): (name, transposed) for transposed in (True, False)}
    with operators_found_once():
        graph = _trace(marked)
    weights = {}
    for index, tensor in enumerate(graph.graph.initializer):
        if tensor.raw_data in found:
            weights[index] = found[tensor.raw_data]
        elif tensor.data_type == tensor.FLOAT:
            assert len(tensor.raw_data) == 4, f"{tensor.name} may be made of several weights: convert each model"
    return _Form(graph, weights)


def _bytes(weight: torch.Tensor, transposed: bool) -> bytes:
    whole = weight.detach().float()
    return bytes((whole.T if transposed and whole.ndim == 2 else whole).contiguous().numpy().tobytes())
